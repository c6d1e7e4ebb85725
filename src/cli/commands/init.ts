/** `agent init`: asks for the settings, writes the configuration, and tests it. */
import fs from 'node:fs';
import path from 'node:path';
import { loadConfig, userConfig } from '../../config/load.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import { type Answers, answersOf, askerOf, configText, type InitFlags } from '../init/answers.ts';
import { untilStopped } from '../process.ts';
import { putFile } from '../put-file.ts';
import { check } from './check.ts';

interface InitOptions extends InitFlags {
  readonly output?: string;
  readonly force?: boolean;
}

const MAX_ATTEMPTS = 3;
/** The units read their configuration and their password here, or in a directory of the instance (systemd/). */
const SERVICE_DIRECTORY = '/etc/agent';

export async function init(options: InitOptions): Promise<void> {
  const file = path.resolve(options.output ?? usualPlace(options));
  if (fs.existsSync(file) && !options.force) throw isThere(file);
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
  await checkUntilSignedIn(file, complete, options);
  if (process.exitCode === EXIT.ok) process.stdout.write(nextStep(file, options));
}

function usualPlace({ service }: InitOptions): string {
  const file = service
    ? path.join(SERVICE_DIRECTORY, service === true ? '' : service, 'config.yaml')
    : userConfig(process.env);
  if (file !== undefined) return file;
  throw new JobtailError('usage', '$HOME is not set', { hint: 'name the file to write with --output FILE' });
}

/** A refused user name or secret can be entered again, three times. */
async function checkUntilSignedIn(file: string, { sections, secret }: Answers, options: InitOptions): Promise<void> {
  let { auth = {}, ...others } = sections;
  for (let attempt = 1; ; attempt++) {
    process.exitCode = undefined;
    await check({ config: file, task: [] });
    if (process.exitCode !== EXIT.signIn || secret === undefined || !process.stdin.isTTY || attempt === MAX_ATTEMPTS)
      return;
    process.stdout.write('\n');
    await untilStopped(async (signal) => {
      const ask = askerOf(signal);
      const { username = null } = auth;
      if (username !== null) auth = { ...auth, username: await ask('', { text: 'User name', suggestion: username }) };
      const text = await ask('', { text: 'The secret again (not shown)', secret: true });
      putFile(secret.file, `${text}\n`);
      putFile(file, configText({ ...others, auth }), modeFor(options));
    });
  }
}

function nextStep(file: string, { service }: InitOptions): string {
  if (typeof service === 'string')
    return `\nnext: systemctl enable --now agent@${service}, then agent jobs -c ${file}\n`;
  if (service) return '\nnext: systemctl enable --now agent, then agent jobs\n';
  const given = file === userConfig(process.env) && !process.env['AGENT_CONFIG'] ? '' : ` -c ${file}`;
  return `\nnext: agent jobs${given}, then agent watch JOB --foreground${given}, or agent run${given} as a daemon\n`;
}

/** The configuration of a service is readable for its user. */
const modeFor = ({ service }: InitOptions) => (service ? 0o644 : 0o600);

async function write(file: string, { sections, secret }: Answers, options: InitOptions): Promise<void> {
  const texts = new Map([[file, { text: configText(sections), mode: modeFor(options) }]]);
  if (secret !== undefined) texts.set(secret.file, { text: `${secret.text}\n`, mode: 0o600 });
  const there = [...texts.keys()].filter((each) => fs.existsSync(each));
  if (there.length > 0 && !options.force)
    throw isThere(there.join(' and '), there.includes(file) ? undefined : OF_ANOTHER);
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: options.service ? 0o755 : 0o700 });
  for (const each of there) fs.renameSync(each, `${each}.bak`);
  try {
    for (const [each, { text, mode }] of texts) putFile(each, text, mode);
    // Validates the answers.
    await loadConfig(file);
  } catch (thrown) {
    for (const each of texts.keys()) fs.rmSync(each, { force: true });
    for (const each of there) fs.renameSync(`${each}.bak`, each);
    throw thrown;
  }
  if (secret !== undefined) process.stdout.write(`${secret.file}: the secret, readable for you alone\n`);
  process.stdout.write(`${file}: the configuration\n`);
}

/** The secret has a fixed name: another configuration of this directory may use it. */
const OF_ANOTHER = 'use it with --secret-file, or name a file of another directory with --output';

const isThere = (file: string, hint = 'name another with --output, or use --force') =>
  new JobtailError('usage', `${file} is there already`, { hint });
