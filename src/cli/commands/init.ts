/** `agent init`: asks for the settings, writes the configuration, and tests it. */
import fs from 'node:fs';
import path from 'node:path';
import { loadConfig, userConfig } from '../../config/load.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import { type Answers, answersOf, askerOf, type InitFlags } from '../init/answers.ts';
import { configText } from '../init/config-text.ts';
import { untilStopped } from '../process.ts';
import { check } from './check.ts';

interface InitOptions extends InitFlags {
  readonly output?: string;
  readonly force?: boolean;
}

const MAX_ATTEMPTS = 3;
/** The unit reads its configuration and its password here (systemd/agent.service). */
const SERVICE_DIRECTORY = '/etc/agent';

export async function init(options: InitOptions): Promise<void> {
  const file = path.resolve(options.output ?? usualPlace(options));
  if (fs.existsSync(file) && !options.force) {
    throw new JobtailError('usage', `${file} is there already`, { hint: 'name another with --output, or use --force' });
  }
  const complete = await untilStopped(async (signal) => {
    const answers = await answersOf(file, options, signal);
    await write(file, answers, options);
    return answers;
  });
  if (!options.check) {
    process.stdout.write(nextStep(file, options));
    return;
  }
  process.stdout.write('\n');
  // The unit passes the password as a credential; here, it is read from its directory.
  if (options.service) process.env['CREDENTIALS_DIRECTORY'] ??= path.dirname(file);
  await checkUntilSignedIn(file, complete);
  if (process.exitCode === undefined || process.exitCode === EXIT.ok) process.stdout.write(nextStep(file, options));
}

function usualPlace({ service }: InitOptions): string {
  const file = service ? path.join(SERVICE_DIRECTORY, 'config.yaml') : userConfig(process.env);
  if (file !== undefined) return file;
  throw new JobtailError('usage', '$HOME is not set', { hint: 'name the file to write with --output FILE' });
}

/** A refused password can be entered again, three times. */
async function checkUntilSignedIn(file: string, { secret }: Answers): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    process.exitCode = undefined;
    await check({ config: file, task: [] });
    if (process.exitCode !== EXIT.signIn || secret === undefined || !process.stdin.isTTY || attempt === MAX_ATTEMPTS)
      return;
    process.stdout.write('\n');
    const text = await untilStopped((signal) =>
      askerOf(signal)('', { text: 'The secret again (not shown)', secret: true }),
    );
    fs.writeFileSync(secret.file, `${text}\n`);
  }
}

function nextStep(file: string, { service }: InitOptions): string {
  if (service) return '\nnext: systemctl enable --now agent, then agent jobs\n';
  const given = file === userConfig(process.env) && !process.env['AGENT_CONFIG'] ? '' : ` -c ${file}`;
  return `\nnext: agent jobs${given}, then agent watch JOB --foreground${given}, or agent run${given} as a daemon\n`;
}

/** Both files are private; the configuration of a service is readable for its user. */
async function write(file: string, { sections, secret }: Answers, options: InitOptions): Promise<void> {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: options.service ? 0o755 : 0o700 });
  if (secret !== undefined) {
    replaceFile(secret.file, `${secret.text}\n`, 0o600, options);
    process.stdout.write(`${secret.file}: the secret, readable for you alone\n`);
  }
  replaceFile(file, configText(sections), options.service ? 0o644 : 0o600, options);
  // Validates the answers.
  await loadConfig(file);
  process.stdout.write(`${file}: the configuration\n`);
}

function replaceFile(file: string, text: string, mode: number, { force }: InitOptions): void {
  if (force && fs.existsSync(file)) fs.renameSync(file, `${file}.bak`);
  try {
    fs.writeFileSync(file, text, { mode, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new JobtailError('usage', `${file} is there already`, { hint: 'move it away, or use --force' });
  }
}
