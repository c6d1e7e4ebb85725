/** `agent init`: asks for the settings, writes the configuration, and tests it. */
import fs from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../config/load.ts';
import { JobtailError } from '../../errors.ts';
import { answersOf, type Complete, type InitFlags } from '../init/answers.ts';
import { type AnsweredService, configText } from '../init/config-text.ts';
import { untilStopped } from '../process.ts';
import { check } from './check.ts';

export interface InitOptions extends InitFlags {
  readonly output?: string;
  readonly force?: boolean;
}

/** The unit reads its configuration and its password here (systemd/agent.service). */
const SERVICE_DIRECTORY = '/etc/agent';

export async function init(options: InitOptions): Promise<void> {
  const fallback = options.service ? path.join(SERVICE_DIRECTORY, 'config.yaml') : 'config.yaml';
  const file = path.resolve(options.output ?? fallback);
  if (fs.existsSync(file) && !options.force) {
    throw new JobtailError('usage', `${file} is there already`, { hint: 'name another with --output, or use --force' });
  }
  await untilStopped(async (signal) => write(file, await answersOf(file, options, signal), options));
  if (!options.check) return;
  process.stdout.write('\n');
  // The unit passes the password as a credential; here, it is read from its directory.
  if (options.service) process.env['CREDENTIALS_DIRECTORY'] ??= path.dirname(file);
  await check({ config: file, task: [] });
}

/** Both files are private; the configuration of a service is readable for its user. */
async function write(file: string, { answers, secret }: Complete, options: InitOptions): Promise<void> {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: options.service ? 0o755 : 0o700 });
  if (secret !== undefined) {
    replaceFile(secret.file, `${secret.text}\n`, 0o600, options);
    process.stdout.write(`${secret.file}: the secret, readable for you alone\n`);
  }
  replaceFile(file, configText(answers), options.service ? 0o644 : 0o600, options);
  // Validates the answers.
  await loadConfig(file);
  process.stdout.write(`${file}: the configuration${foundText(answers.service)}\n`);
  if (process.geteuid?.() === 0 && !options.service) {
    process.stdout.write(`root takes no configuration from the working directory: add -c ${file} to each command\n`);
  }
}

function foundText(service: AnsweredService): string {
  if (service.protocol === 'rest') return ` of the middleware that speaks REST at ${service.baseUrl}${service.path}`;
  return service.jobsUrl === null ? '' : ', with JobManagementWs, which was found beside the file transfer';
}

function replaceFile(file: string, text: string, mode: number, { force }: InitOptions): void {
  if (force) fs.rmSync(file, { force: true });
  try {
    fs.writeFileSync(file, text, { mode, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new JobtailError('usage', `${file} is there already`, { hint: 'move it away, or use --force' });
  }
}
