/** `agent init`: asks what it has to know, writes the configuration, and tries it. */
import fs from 'node:fs';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { secretNameOf } from '../../config/auth-schema.ts';
import { AUTH_METHODS, type AuthMethod } from '../../config/choices.ts';
import { loadConfig } from '../../config/load.ts';
import { JobtailError } from '../../errors.ts';
import { parseLong } from '../../job.ts';
import { namespaceOf } from '../check/namespace.ts';
import { type Answers, configText } from '../init/config-text.ts';
import { Questions } from '../init/questions.ts';
import { stopSignals } from '../stop-signals.ts';
import { check } from './check.ts';

export interface InitOptions {
  readonly output?: string;
  readonly url?: string;
  readonly namespace?: string;
  readonly baseUrl?: string;
  readonly method?: AuthMethod;
  readonly username?: string;
  readonly projectId?: string;
  readonly secretFile?: string;
  readonly secretStdin?: boolean;
  readonly service?: boolean;
  readonly force?: boolean;
  readonly check: boolean;
}

/** The unit reads its configuration and its password from here (systemd/agent.service). */
const SERVICE_DIRECTORY = '/etc/agent';

export async function init(options: InitOptions): Promise<void> {
  const fallback = options.service === true ? path.join(SERVICE_DIRECTORY, 'config.yaml') : 'config.yaml';
  const file = path.resolve(options.output ?? fallback);
  if (fs.existsSync(file) && options.force !== true) {
    throw new JobtailError('usage', `${file} is there already`, { hint: 'name another with --output, or say --force' });
  }
  const stopping = stopSignals();
  try {
    const { answers, secret } = await answersOf(file, options, stopping.signal);
    await write(file, answers, secret, options);
  } finally {
    stopping.dispose();
  }
  if (!options.check) return;
  process.stdout.write('\n');
  // The unit hands the password over as a credential; here, it is read where it lies.
  if (options.service === true) process.env['CREDENTIALS_DIRECTORY'] ??= path.dirname(file);
  await check({ config: file, task: [], commandLine: ['check', '-c', file] });
}

/** A secret that was given here, and the file it goes into. */
interface GivenSecret {
  readonly file: string;
  readonly text: string;
}

interface Complete {
  readonly answers: Answers;
  readonly secret: GivenSecret | undefined;
}

async function answersOf(file: string, options: InitOptions, signal: AbortSignal): Promise<Complete> {
  const ask = askerOf(signal);
  const fileTransferUrl =
    options.url ?? (await ask('--url', { text: 'Address of the file-transfer service', refuse: refuseUrl }));
  const namespace =
    options.namespace ??
    (await ask('--namespace', {
      text: 'XML namespace of its operations (targetNamespace in its WSDL)',
      suggestion: process.stdin.isTTY ? await namespaceOf(fileTransferUrl, signal) : undefined,
    }));
  const method =
    options.method ??
    ((await ask('--method', {
      text: `How to sign in (${AUTH_METHODS.join(', ')})`,
      suggestion: 'password',
      refuse: (answer) => (AUTH_METHODS.some((known) => known === answer) ? undefined : 'it is one of those named'),
    })) as AuthMethod);
  const signsIn = method !== 'session-code';
  const suggestion = URL.canParse(fileTransferUrl) ? new URL(fileTransferUrl).origin : undefined;
  const baseUrl = signsIn
    ? (options.baseUrl ??
      (await ask('--base-url', { text: 'Address the sign-in starts from', suggestion, refuse: refuseUrl })))
    : null;
  const username = signsIn ? (options.username ?? (await ask('--username', { text: 'User name' }))) : null;
  const projectId =
    method === 'cloud-platform'
      ? (options.projectId ??
        (await ask('--project-id', {
          text: 'Id of the project',
          refuse: (answer) => (parseLong(answer) === undefined ? 'it is a whole number' : undefined),
        })))
      : null;
  const { key, secret } = await secretOf(file, method, options, ask);
  const service = options.service === true;
  const answers = {
    ...{ fileTransferUrl, namespace, baseUrl, method, username, projectId, secret: key },
    mirrorDirectory: service ? '/srv/agent' : './mirror',
    stateDirectory: service ? '/var/lib/agent/state' : './state',
  };
  return { answers, secret };
}

type Ask = (flag: string, question: Parameters<Questions['ask']>[0]) => Promise<string>;

/** Asks on a terminal; elsewhere, what is missing is an error that names the flag. */
function askerOf(signal: AbortSignal): Ask {
  const questions = new Questions(signal);
  return async (flag, question) => {
    if (process.stdin.isTTY) return questions.ask(question);
    if (question.suggestion !== undefined) return question.suggestion;
    throw new JobtailError('usage', `${flag} is missing, and there is no terminal to ask on`, {
      hint: 'agent init --help names all flags',
    });
  };
}

/** Where the secret is, and the secret itself if it is given here. */
async function secretOf(
  file: string,
  method: AuthMethod,
  options: InitOptions,
  ask: Ask,
): Promise<{ readonly key: Answers['secret']; readonly secret: GivenSecret | undefined }> {
  const name = secretNameOf(method);
  const { secretFile, secretStdin, service } = options;
  if (secretFile !== undefined) return { key: [`${name}File`, path.resolve(secretFile)], secret: undefined };
  const words = { password: 'Password', token: 'Token', sessionCode: 'Session code' }[name];
  const text = secretStdin
    ? (await textOf(process.stdin)).replace(/\r?\n$/, '')
    : await ask('--secret-file or --secret-stdin', { text: `${words} (not shown)`, secret: true });
  const base = name === 'sessionCode' ? 'session-code' : name;
  const secret = { file: path.join(path.dirname(file), base), text };
  return { key: service === true ? [`${name}Credential`, base] : [`${name}File`, `./${base}`], secret };
}

const refuseUrl = (answer: string) =>
  /^https?:$/.test(URL.canParse(answer) ? new URL(answer).protocol : '') ? undefined : 'it starts with https://';

/** Both files, private to the one who writes them; the configuration of a service is for its user to read. */
async function write(file: string, answers: Answers, secret: GivenSecret | undefined, options: InitOptions) {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: options.service === true ? 0o755 : 0o700 });
  if (secret !== undefined) {
    replaceFile(secret.file, `${secret.text}\n`, 0o600, options);
    process.stdout.write(`${secret.file}: the secret, readable for you alone\n`);
  }
  replaceFile(file, configText(answers), options.service === true ? 0o644 : 0o600, options);
  // What the schema refuses is said in its words.
  await loadConfig(file);
  process.stdout.write(`${file}: the configuration\n`);
}

function replaceFile(file: string, text: string, mode: number, { force }: InitOptions): void {
  if (force === true) fs.rmSync(file, { force: true });
  try {
    fs.writeFileSync(file, text, { mode, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new JobtailError('usage', `${file} is there already`, { hint: 'move it away, or say --force' });
  }
}
