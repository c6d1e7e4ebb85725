/** The answers for `agent init`, from flags or from the terminal, and the configuration of them. */
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { API_KEY, AUTH_METHODS, type AuthMethod, secretNameOf } from '../../auth.ts';
import { userConfig, userDirectory } from '../../config/load.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { parseLong } from '../../job.ts';
import { printable, printableJson } from '../../printable.ts';
import { DEFAULT_PATH } from '../../remote/rest/contract.ts';
import { jobsUrlBeside, requestAnswer } from '../check/description.ts';
import { columnsOf, forStderr, pc, wrapToColumns } from '../show/terminal.ts';
import { type FoundService, type Protocol, redirectAt, serviceAt } from './service.ts';

export interface InitFlags {
  readonly url?: string;
  /** Detected if omitted. */
  readonly protocol?: Protocol;
  readonly namespace?: string;
  readonly baseUrl?: string;
  readonly method?: AuthMethod;
  readonly username?: string;
  readonly projectId?: string;
  readonly secretFile?: string;
  readonly secretStdin?: boolean;
  /** For the systemd unit `agent`, or for the instance of `agent@` with this name. */
  readonly service?: boolean | string;
  /** Whether the service may be requested. */
  readonly check: boolean;
}

/** The keys of each section; those without a value are left out. */
type Keys = Readonly<Record<string, string | null>>;
type Sections = Readonly<Record<string, Keys>>;

export interface Answers {
  readonly sections: Sections;
  /** If it was entered here. */
  readonly secret: { readonly file: string; readonly text: string } | undefined;
}

const HEAD = `# Configuration of jobtail (the command \`agent\`), written by \`agent init\`. Try it with \`agent check\`.
# \`agent help configuration\` lists all keys; config.example.yaml explains them.
`;

export function configText(sections: Sections): string {
  const texts = Object.entries(sections).map(([name, keys]) => {
    const given = Object.entries(keys).filter(([, value]) => value !== null);
    // JSON is valid YAML for any text.
    return [`\n${name}:`, ...given.map(([key, value]) => `  ${key}: ${printableJson(value)}`), ''].join('\n');
  });
  return `${HEAD}${texts.join('')}`;
}

/** Beside the configuration, unless that is in the directory for configurations; of a unit, those that it makes. */
function directoriesFor(file: string, { service }: InitFlags) {
  const instance = typeof service === 'string' ? `-${service}` : '';
  if (service) return { mirror: `/srv/agent${instance}`, state: `/var/lib/agent${instance}/state` };
  const data = userDirectory(process.env, 'XDG_DATA_HOME', '.local/share');
  const state = userDirectory(process.env, 'XDG_STATE_HOME', '.local/state');
  if (file !== userConfig(process.env) || data === undefined || state === undefined)
    return { mirror: './mirror', state: './state' };
  return { mirror: path.join(data, 'jobtail', 'mirror'), state: path.join(state, 'jobtail') };
}

/** @throws JobtailError usage where a flag is missing and there is no terminal, aborted without an answer */
export async function answersOf(file: string, flags: InitFlags, signal: AbortSignal): Promise<Answers> {
  const ask = askerOf(signal);
  const text = 'Address of the middleware (such as https://middleware.example.org)';
  let found: FoundService | undefined;
  const find = async (answer: string) => {
    if (flags.check) found = await findService(answer, flags, signal);
  };
  // A mistyped address is asked again; one of a flag ends the command.
  const refuse = async (answer: string) => refuseUrl(answer) ?? (await find(answer).then(() => undefined, reasonOf));
  const why = flags.url === undefined ? undefined : refuseUrl(flags.url);
  if (why !== undefined)
    throw new JobtailError('usage', `--url ${printable(flags.url ?? '')} is no address`, { hint: why });
  const address = flags.url ?? (await ask('--url', { text, refuse }));
  if (flags.url !== undefined) await find(address);
  if (found !== undefined && process.stdin.isTTY) process.stderr.write(`  found: ${foundText(found)}\n`);
  const protocol = found?.protocol ?? flags.protocol ?? (await protocolOf(address, flags, ask));
  const method = flags.method ?? (await askMethod(ask, protocol));
  const signsIn = method !== 'session-code';
  const service = await serviceOf({ address, found, protocol, signsIn }, flags, ask, signal);
  const username = signsIn ? (flags.username ?? (await ask('--username', { text: 'User name' }))) : null;
  const projectId = method === 'cloud-platform' ? (flags.projectId ?? (await askProject(ask))) : null;
  const { key, secret } = await secretOf(file, method, flags, ask);
  const { mirror, state } = directoriesFor(file, flags);
  const auth = { method, username, projectId, ...key };
  return { sections: { service, auth, mirror: { directory: mirror }, state: { directory: state } }, secret };
}

/** @throws what is no reason against an address */
function reasonOf(thrown: unknown): string {
  const { code, message, hint } = asJobtailError(thrown);
  if (code === 'aborted' || code === 'internal') throw thrown;
  return hint === undefined ? message : `${message}; ${hint}`;
}

function foundText(found: FoundService): string {
  return found.protocol === 'rest' ? `REST at ${found.baseUrl}${found.path}` : `SOAP at ${found.fileTransferUrl}`;
}

/** The service at an address. @throws JobtailError redirected: another server is only named */
async function findService(address: string, flags: InitFlags, signal: AbortSignal): Promise<FoundService | undefined> {
  const found = await serviceAt(address, signal, flags.protocol);
  if (found !== undefined) return found;
  await requireResponse(address, flags, signal);
  const redirect = await redirectAt(address, signal);
  if (redirect === undefined || redirect === address) return undefined;
  throw new JobtailError('redirected', `${printable(address)} redirects to ${printable(redirect)}`, {
    hint: `if it is the right server: --url ${printable(redirect)}`,
  });
}

/** An address without a described service may be that of one that does not describe itself; one without a response is mistyped. */
async function requireResponse(address: string, { namespace }: InitFlags, signal: AbortSignal): Promise<void> {
  const hint = 'check the address; with --no-check, the configuration is written without a request';
  const { status, text } = await requestAnswer(address, signal).catch((thrown: unknown) => {
    throw new JobtailError('unavailable', `nothing answers at ${address}: ${asJobtailError(thrown).message}`, { hint });
  });
  const isPage = status === 200 && /^(?:\s|<!--(?:(?!-->)[\s\S])*-->)*<(?:!doctype )?html\b/i.test(text);
  if (namespace !== undefined || !isPage) return;
  const isSignIn = /<input[^>]*type=["']?password/i.test(text);
  const page = isSignIn ? 'a page for signing in' : 'a page for browsers';
  throw new JobtailError('unexpected-answer', `${printable(address)} is ${page}, and no service of a middleware`, {
    hint: isSignIn ? 'ask its operator how a program without a browser gets past it' : hint,
  });
}

/** Of a service that was not found, or not searched. @throws JobtailError as `answersOf`, unexpected-answer */
async function protocolOf(address: string, { check, namespace }: InitFlags, ask: Ask): Promise<Protocol> {
  if (namespace !== undefined) return 'soap';
  if (check && !process.stdin.isTTY)
    throw new JobtailError('unexpected-answer', `no service of a middleware is found at ${printable(address)}`, {
      hint: 'check the address; if it is right, add --protocol',
    });
  return (await ask('--protocol', {
    text: `${check ? 'No service is found there. ' : ''}Protocol of the middleware (rest, soap)`,
    suggestion: process.stdin.isTTY ? 'rest' : undefined,
    refuse: (answer) => (/^(?:rest|soap)$/.test(answer) ? undefined : 'it is rest or soap'),
  })) as Protocol;
}

interface WantedService {
  readonly address: string;
  readonly found: FoundService | undefined;
  readonly protocol: Protocol;
  readonly signsIn: boolean;
}

/** Detected values, unless a flag sets another; asks for the rest. */
async function serviceOf(
  { address, found, protocol, signsIn }: WantedService,
  flags: InitFlags,
  ask: Ask,
  signal: AbortSignal,
): Promise<Keys> {
  if (found?.protocol === 'rest' || (found === undefined && protocol === 'rest')) {
    const { baseUrl, path: below } = found ?? { baseUrl: withoutPath(address), path: DEFAULT_PATH };
    // The default is left out.
    return { protocol: 'rest', baseUrl: flags.baseUrl ?? baseUrl, path: below === DEFAULT_PATH ? null : below };
  }
  const fileTransferUrl = found?.fileTransferUrl ?? address;
  const namespace =
    flags.namespace ??
    found?.namespace ??
    (await ask('--namespace', { text: 'XML namespace of its operations (targetNamespace in its WSDL)' }));
  // No question: operators rarely have this address, and a response proves it.
  const jobsUrl = flags.check ? ((await jobsUrlBeside({ fileTransferUrl, namespace }, signal)) ?? null) : null;
  const suggestion = URL.canParse(address) ? new URL(address).origin : undefined;
  const askBase = () => ask('--base-url', { text: 'Address the sign-in starts from', suggestion, refuse: refuseUrl });
  const baseUrl = signsIn ? (flags.baseUrl ?? (found === undefined ? await askBase() : (suggestion ?? null))) : null;
  return { protocol: 'soap', fileTransferUrl, namespace, jobsUrl, baseUrl };
}

const withoutPath = (address: string) => address.replace(/\/+$/, '').replace(new RegExp(`${DEFAULT_PATH}$`), '');

function askMethod(ask: Ask, protocol: Protocol | undefined): Promise<AuthMethod> {
  // Over REST, no release returns a session code for cloud-platform.
  const ofRest = [...AUTH_METHODS.filter((method) => method !== 'cloud-platform'), API_KEY] as const;
  const methods: readonly AuthMethod[] = protocol === 'rest' ? ofRest : AUTH_METHODS;
  return ask('--method', {
    text: `How to sign in (${methods.join(', ')})`,
    suggestion: 'password',
    refuse: (answer) => (methods.some((known) => known === answer) ? undefined : 'it is one of those named'),
  }) as Promise<AuthMethod>;
}

const askProject = (ask: Ask) =>
  ask('--project-id', {
    text: 'Id of the project',
    refuse: (answer) => (parseLong(answer) === undefined ? 'it is a whole number' : undefined),
  });

const refuseUrl = (answer: string) =>
  /^https?:$/.test(URL.canParse(answer) ? new URL(answer).protocol : '')
    ? undefined
    : 'it starts with https:// or http://';

/** The key for the file of the secret, and the secret if it is entered here. */
async function secretOf(
  file: string,
  method: AuthMethod,
  { secretFile, secretStdin, service }: InitFlags,
  ask: Ask,
): Promise<{ readonly key: Keys } & Pick<Answers, 'secret'>> {
  const name = secretNameOf(method);
  if (secretFile !== undefined && !service)
    return { key: { [`${name}File`]: path.resolve(secretFile) }, secret: undefined };
  const words = { password: 'Password', token: 'Token', sessionCode: 'Session code' }[name];
  const withoutEnd = (text: string) => text.replace(/\r?\n$/, '');
  const entered = async () =>
    secretStdin
      ? withoutEnd(await textOf(process.stdin))
      : await ask('--secret-file or --secret-stdin', { text: `${words} (not shown)`, secret: true });
  // The units load this one, whatever it is.
  const base = service ? 'password' : name === 'sessionCode' ? 'session-code' : name;
  const target = path.join(path.dirname(file), base);
  const key = service ? { [`${name}Credential`]: base } : { [`${name}File`]: `./${base}` };
  if (secretFile !== undefined && path.resolve(secretFile) === target) return { key, secret: undefined };
  // The user of the unit may not read the named file, and systemd passes on this one alone.
  const text = secretFile === undefined ? await entered() : withoutEnd(fs.readFileSync(secretFile, 'utf8'));
  if (text === '')
    throw new JobtailError('usage', `${secretFile ?? 'the standard input'} has no ${words.toLowerCase()}`, {
      hint: 'it is expected alone, on one line',
    });
  return { key, secret: { file: target, text } };
}

export interface Question {
  readonly text: string;
  /** Used for an empty answer, and without a terminal. */
  readonly suggestion?: string | undefined;
  /** Why an answer is invalid; then it is asked again. */
  readonly refuse?: (answer: string) => string | undefined | Promise<string | undefined>;
  readonly secret?: boolean;
}

/** Asks a question. @throws JobtailError aborted without an answer; without a terminal, names the missing flag */
export type Ask = (flag: string, question: Question) => Promise<string>;

export function askerOf(signal: AbortSignal): Ask {
  return async (flag, { text, suggestion, refuse, secret = false }) => {
    if (!process.stdin.isTTY) {
      if (suggestion !== undefined) return suggestion;
      throw new JobtailError('usage', `${flag} is missing, and there is no terminal to ask on`, {
        hint: 'see agent init --help for all flags',
      });
    }
    const question = suggestion === undefined ? `${text}:` : `${text} ${pc.dim(`[${printable(suggestion)}]`)}:`;
    const shown = forStderr(`${wrapToColumns(question, columnsOf(process.stderr) - 1).join('\n')} `);
    for (;;) {
      const typed = await lineTyped(shown, secret, signal);
      const answer = typed === '' ? (suggestion ?? '') : typed;
      const why = answer === '' ? 'an answer is needed' : await refuse?.(answer);
      if (why === undefined) return answer;
      const lines = wrapToColumns(`  ${why}`, columnsOf(process.stderr));
      process.stderr.write(forStderr(`${lines.map((line) => pc.yellow(line)).join('\n')}\n`));
    }
  };
}

/** A line of the terminal. @throws JobtailError aborted without one */
export async function lineTyped(prompt: string, secret: boolean, signal: AbortSignal): Promise<string> {
  const hidden = new Writable({ write: (_bytes, _encoding, done) => done() });
  const lines = readline.createInterface({
    input: process.stdin,
    output: secret ? hidden : process.stderr,
    terminal: process.stdin.isTTY,
  });
  const closed = new AbortController();
  lines.once('close', () => closed.abort());
  lines.once('SIGINT', () => closed.abort());
  // readline would erase the prompt before its own.
  if (secret) process.stderr.write(prompt);
  try {
    const typed = await lines.question(secret ? '' : prompt, { signal: AbortSignal.any([signal, closed.signal]) });
    return secret ? typed : typed.trim();
  } catch {
    throw new JobtailError('aborted', 'there was no answer');
  } finally {
    lines.close();
    if (secret) process.stderr.write('\n');
  }
}
