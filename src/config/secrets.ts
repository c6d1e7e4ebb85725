/** The secrets of a configuration, in one list: for redaction, reports, warnings, and the refusal of shares. */
import fs from 'node:fs';
import path from 'node:path';
import { type AuthMethod, type SecretSource, secretFileOf, secretNameOf } from '../auth.ts';
import { asJobtailError } from '../errors.ts';
import type { Secrets } from '../redact.ts';

/** The part of a configuration that has secrets. */
interface SecretHolder {
  readonly state: { readonly directory: string };
  readonly auth: { readonly method: AuthMethod; readonly secret: SecretSource };
  readonly service: {
    readonly tls: { readonly [Key in 'caFile' | 'certFile' | 'keyFile']: string | null };
    readonly proxyUserFile: string | null;
  };
  readonly fleet: { readonly urlFile: string | null; readonly urlCredential: string | null } | null;
  readonly view: { readonly tokenFile: string | null } | null;
  readonly notify: readonly {
    readonly url: string | null;
    readonly secretFile: string | null;
    readonly caFile: string | null;
    readonly command: readonly string[] | null;
  }[];
}

interface ConfiguredSecret {
  readonly name: string;
  /** A text if it is in the configuration itself. */
  readonly source: SecretSource | string;
  /** What must not be shown of its text. */
  readonly piecesOf: (text: string) => readonly string[];
  readonly isPem?: boolean;
  /** Its reader warns of the mode of the file. */
  readonly warnsItself?: boolean;
  /** At its first start, if it is missing. */
  readonly isMadeByAgent?: boolean;
}

const whole = (text: string) => [text];
const file = (name: string, at: string | null, more: Partial<ConfiguredSecret> = {}): ConfiguredSecret[] =>
  at === null ? [] : [{ name, source: { kind: 'file', path: at }, piecesOf: whole, ...more }];

/** The one list. */
function secretsIn({ state, auth, service, fleet, view, notify }: SecretHolder): ConfiguredSecret[] {
  const { method, secret } = auth;
  const database = { name: 'address of the database', piecesOf: passwordsIn, warnsItself: true };
  const credential = fleet?.urlCredential ?? null;
  const token = view === null ? null : (view.tokenFile ?? path.join(state.directory, 'view-token'));
  return [
    { name: secretNameOf(method), source: secret, piecesOf: whole, warnsItself: true },
    ...(secret.kind === 'command' ? wordsOf(secret.argv.slice(1)) : []),
    ...file('key of the client', service.tls.keyFile, { piecesOf: linesOfKey, isPem: true }),
    ...file('user of the proxy', service.proxyUserFile, { piecesOf: partsOfUser }),
    ...file(database.name, fleet?.urlFile ?? null, database),
    ...(credential === null ? [] : [{ ...database, source: { kind: 'credential', name: credential } as const }]),
    ...file('token of the view', token, { warnsItself: true, isMadeByAgent: true }),
    ...notify.flatMap(({ url, secretFile, command }) => [
      ...file('secret of a notification', secretFile),
      ...(url === null ? [] : wordsOf([url.slice(new URL(url).origin.length)])),
      ...wordsOf(command?.slice(1) ?? []),
    ]),
  ];
}

/** All files that a configuration names and that root may have to read for its agent. */
export function filesOf(config: SecretHolder & { readonly file: string }, env: Environment): string[] {
  const { caFile, certFile } = config.service.tls;
  const cas = config.notify.map((rule) => rule.caFile);
  const files = [config.file, caFile, certFile, ...cas, ...secretFilesOf(config, env)];
  return files.filter((at) => typeof at === 'string');
}

export type Environment = Readonly<Record<string, string | undefined>>;

export function secretFilesOf(config: SecretHolder, env: Environment = {}): string[] {
  return secretsIn(config).flatMap(({ source }) =>
    typeof source === 'string' ? [] : (secretFileOf(source, env) ?? []),
  );
}

interface KeepOptions {
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** Whether programs that print a secret run. */
  readonly withPrograms: boolean;
  readonly onWarning?: (message: string) => void;
}

/** Adds the secrets of a configuration to `secrets`; returns an error message for each that cannot be read. */
export async function keepSecrets(config: SecretHolder, secrets: Secrets, options: KeepOptions): Promise<string[]> {
  const { env, signal, withPrograms, onWarning } = options;
  const unread: string[] = [];
  const { Secret } = await import('../system/secret.ts');
  for (const { name, source, piecesOf, isPem, warnsItself, isMadeByAgent } of secretsIn(config)) {
    if (typeof source !== 'string' && source.kind === 'command' && !withPrograms) continue;
    if (isMadeByAgent === true && typeof source !== 'string' && source.kind === 'file' && !fs.existsSync(source.path))
      continue;
    try {
      const warn = warnsItself === true ? undefined : onWarning;
      const secret = typeof source === 'string' ? source : new Secret({ source, name, env, isPem, onWarning: warn });
      const text = typeof secret === 'string' ? secret : await secret.read(signal);
      for (const piece of piecesOf(text)) if (piece !== '') secrets.add('configured', piece);
    } catch (thrown) {
      unread.push(asJobtailError(thrown).message);
    }
  }
  return unread;
}

/** Shorter words are options. */
const MIN_CHARACTERS = 4;
const USUAL = /^(?:services|webhooks?|workflows|api|hooks|v\d+|[A-Za-z]{1,7})$/;

/** Words of an argument or of an address; a word for a secret and a secret look alike. Files of this machine are none. */
function wordsOf(texts: readonly string[]): ConfiguredSecret[] {
  const isFile = (text: string) => text.startsWith('/') && fs.existsSync(text);
  const piecesOf = (text: string) =>
    text
      .replace(/^--?[\w-]+=?/, '')
      .split(/[/?&=#,\s]+/)
      .filter((word) => word.length >= MIN_CHARACTERS && !USUAL.test(word));
  return texts.filter((text) => !isFile(text)).map((source) => ({ name: 'word', source, piecesOf }));
}

/** As they are written in the address, and without its escapes. */
function passwordsIn(address: string): string[] {
  if (!URL.canParse(address)) return [address];
  const { password, searchParams } = new URL(address);
  // Not decodeURIComponent, which throws at a malformed escape.
  const decoded = new URLSearchParams(`password=${password.replaceAll('+', '%2B')}`).get('password') ?? '';
  return [password, decoded, searchParams.get('password') ?? ''];
}

/** The password, and what the header of the proxy has. */
const partsOfUser = (user: string) => [user.slice(user.indexOf(':') + 1), Buffer.from(user).toString('base64')];

/** Without the frame lines, which are the same in every key. */
const linesOfKey = (pem: string) => pem.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('-----'));

interface Guarding extends SecretHolder {
  readonly results: { readonly ssh: { readonly knownHostsFile: string | null } };
}

/** Files and directories that a configuration names and that no service may read. */
export function guardedPathsOf(config: Guarding): string[] {
  const { knownHostsFile } = config.results.ssh;
  return [config.state.directory, ...(knownHostsFile === null ? [] : [knownHostsFile]), ...secretFilesOf(config)];
}
