/** The secrets that a configuration names, for a text that none of them may be in. */
import fs from 'node:fs/promises';
import { type SecretSource, secretNameOf } from '../../auth.ts';
import type { Config } from '../../config/config.ts';
import { asJobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { Secret } from '../../remote/signin/read-secret.ts';
import { readToken, tokenFileOf } from '../../view/token.ts';

/** Adds them to `secrets`; returns an error message for each that exists and cannot be read. */
export async function secretsOf(config: Config, secrets: Secrets, signal: AbortSignal): Promise<string[]> {
  const { auth, fleet, service, state, view } = config;
  const unread: string[] = [];
  const add = async (read: () => Promise<readonly string[]>) => {
    try {
      for (const secret of await read()) if (secret !== '') secrets.add('sign-in', secret);
    } catch (thrown) {
      unread.push(asJobtailError(thrown).message);
    }
  };
  const read = (source: SecretSource, name: string) =>
    new Secret({ source, name, env: process.env, onWarning: () => {} }).read(signal);

  await add(async () => [await read(auth.secret, secretNameOf(auth.method))]);
  if (auth.secret.kind === 'command') {
    for (const argument of auth.secret.argv.slice(1)) await add(async () => secretArgument(argument));
  }
  const database = fleet === null ? undefined : databaseSource(fleet);
  if (database !== undefined) await add(async () => passwordsIn(await read(database, 'address of the database')));
  if (view !== null) {
    const file = tokenFileOf({ tokenFile: view.tokenFile, stateDirectory: state.directory });
    await add(async () => [readToken(file) ?? '']);
  }
  const { keyFile } = service.tls;
  if (keyFile !== null) await add(async () => linesOfKey(await fs.readFile(keyFile, 'utf8')));
  return unread;
}

/** Shorter arguments are options and words such as `show`. */
const MIN_SECRET_ARGUMENT = 8;

/** Of a command that prints a secret: an argument may be one. A path or an option is none. */
function secretArgument(argument: string): string[] {
  const value = argument.replace(/^--?[\w-]+=/, '');
  return value.length < MIN_SECRET_ARGUMENT || /^[-/.~]/.test(value) ? [] : [value];
}

function databaseSource({ urlFile, urlCredential }: NonNullable<Config['fleet']>): SecretSource | undefined {
  if (urlFile !== null) return { kind: 'file', path: urlFile };
  return urlCredential === null ? undefined : { kind: 'credential', name: urlCredential };
}

/** As they are written in the address, and without its escapes. */
function passwordsIn(address: string): string[] {
  if (!URL.canParse(address)) return [address];
  const { password, searchParams } = new URL(address);
  // Not decodeURIComponent, which throws where an escape is malformed.
  const decoded = new URLSearchParams(`password=${password.replaceAll('+', '%2B')}`).get('password') ?? '';
  return [password, decoded, searchParams.get('password') ?? ''];
}

/** The text of a key in PEM without its frame, which is in every key. */
const linesOfKey = (pem: string) => pem.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('-----'));
