/** The directories and the configuration of an agent under measurement. */
import fs from 'node:fs';
import path from 'node:path';
import { NAMESPACE } from './service/job.ts';
import type { Protocol } from './service/protocols.ts';

/** Where a service is, and how it is spoken to. */
export interface ServiceAt {
  /** By SOAP; by REST it is at the root of the same server. */
  readonly url: string;
  /** SOAP if left out. */
  readonly protocol?: Protocol;
  /** Calls at a time; the default if left out. */
  readonly concurrency?: number;
  /** Null: the measured share of the server. Enough for anything if left out. */
  readonly requestsPerMinute?: number | null;
}

/** Writes a configuration into `directory`; `sections` are laid over it. The path of the file. */
export function writeConfig(
  directory: string,
  { url, protocol = 'soap', concurrency, requestsPerMinute = 1_000_000 }: ServiceAt,
  sections: Readonly<Record<string, object | null>> = {},
): string {
  const at = (name: string) => path.join(directory, name);
  fs.writeFileSync(at('session'), 'bench', { mode: 0o600 });
  const soap = protocol === 'soap' ? { fileTransferUrl: url, namespace: NAMESPACE } : {};
  const config = {
    service: {
      ...{ protocol, ...soap, baseUrl: new URL(url).origin },
      ...{ requestsPerMinute, concurrency },
    },
    auth: { method: 'session-code', sessionCodeFile: at('session') },
    mirror: { directory: at('mirror'), minFreeBytes: 1024 * 1024 },
    state: { directory: at('state') },
    logging: { level: 'warn' },
    ...sections,
  };
  fs.writeFileSync(at('config.yaml'), JSON.stringify(config));
  return at('config.yaml');
}
