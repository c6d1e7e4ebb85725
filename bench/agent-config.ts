/** The directories and the configuration of an agent under measurement. */
import fs from 'node:fs';
import path from 'node:path';
import { JOB_ID, NAMESPACE } from './service/answers.ts';

/** Writes a configuration into `directory`; `sections` are laid over it. The path of the file. */
export function writeConfig(
  directory: string,
  url: string,
  sections: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
): string {
  const at = (name: string) => path.join(directory, name);
  fs.writeFileSync(at('session'), 'bench', { mode: 0o600 });
  const config = {
    service: { fileTransferUrl: url, namespace: NAMESPACE, baseUrl: new URL(url).origin, requestsPerMinute: 1_000_000 },
    auth: { method: 'session-code', sessionCodeFile: at('session') },
    mirror: { directory: at('mirror'), minFreeBytes: 1024 * 1024 },
    state: { directory: at('state') },
    logging: { level: 'warn' },
    ...sections,
  };
  fs.writeFileSync(at('config.yaml'), JSON.stringify(config));
  return at('config.yaml');
}

/** Where the results of the one job are. */
export function resultsIn(directory: string): string {
  return path.join(directory, 'mirror', JOB_ID, 'results');
}
