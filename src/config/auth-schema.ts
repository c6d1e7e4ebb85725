/** The section `auth`: how to sign in, and where the secret of the method is read from. */
import type * as z from 'zod';
import { parseLong } from '../job.ts';
import { AUTH_METHODS, type AuthMethod } from './choices.ts';
import { isQuickPattern } from './fault-pattern.ts';
import { command, duration, EVEN_IF_OTHERS_FAIL, id, oneOf, path, section, text } from './values.ts';

/** Where a password, token or session code is read from, anew at every sign-in. The secret itself is never in here. */
export type SecretSource =
  | { readonly kind: 'file'; readonly path: string }
  /** `argv[0]` is the program; no shell. It has `timeoutMs` to print the secret. */
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly timeoutMs: number }
  /** A systemd credential: a file of this name in `$CREDENTIALS_DIRECTORY`. */
  | { readonly kind: 'credential'; readonly name: string };

interface AuthCommon {
  readonly secret: SecretSource;
  /** Between the base URL and the operation: starts with a slash or is empty. */
  readonly path: string;
  /** Instead of the operation name in docs/interface.md 4.2. */
  readonly operation: string | null;
  /** Where the session code stands in an answer that is an object; dots lead into inner objects. */
  readonly sessionCodeField: string | null;
  /** Text of a regular expression (compile with the flag `i`): a fault that matches means a lost session. */
  readonly sessionFaultPattern: string | null;
}

type AuthConfig = AuthCommon &
  (
    | { readonly method: 'openid' | 'external-token' | 'password'; readonly username: string }
    /** `projectId` is canonical decimal text (64-bit). */
    | { readonly method: 'cloud-platform'; readonly username: string; readonly projectId: string }
    | { readonly method: 'session-code' }
  );

const SECRET_NAMES = ['password', 'token', 'sessionCode'] as const;
type SecretName = (typeof SECRET_NAMES)[number];
const SOURCES = ['File', 'Command', 'Credential'] as const;

/** The keys that say where a secret is: `passwordFile` and so on. */
const keysOf = (name: SecretName) => SOURCES.map((source) => `${name}${source}` as const);
const SECRET_KEYS = SECRET_NAMES.flatMap(keysOf);

/** What the secret of a method is called. */
export function secretNameOf(method: AuthMethod): SecretName {
  if (method === 'password') return 'password';
  return method === 'session-code' ? 'sessionCode' : 'token';
}

/** The section for a configuration file in `directory`. */
export function authSection(directory: string) {
  const urlPart = (expected: string) => text(expected, (found) => !/[\s?#]/.test(found));
  const file = path(directory).optional();
  const argv = command(directory).optional();
  const credential = text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found)).optional();
  return section({
    method: oneOf(AUTH_METHODS).prefault('password'),
    username: text().optional(),
    projectId: id('the id of a project', parseLong).optional(),
    path: urlPart('a path such as /service/UserAndLimitationManagement').prefault(
      '/service/UserAndLimitationManagement',
    ),
    operation: urlPart('the name of an operation').nullable().prefault(null),
    sessionCodeField: text().nullable().prefault(null),
    sessionFaultPattern: text(PATTERN, isQuickPattern).nullable().prefault(null),
    commandTimeoutSeconds: duration('seconds', 3600).prefault(30),
    passwordFile: file,
    passwordCommand: argv,
    passwordCredential: credential,
    tokenFile: file,
    tokenCommand: argv,
    tokenCredential: credential,
    sessionCodeFile: file,
    sessionCodeCommand: argv,
    sessionCodeCredential: credential,
  })
    .superRefine(checkMethod, EVEN_IF_OTHERS_FAIL)
    .transform((keys): AuthConfig => {
      const { method, username = '', projectId = '', sessionCodeField, sessionFaultPattern, operation } = keys;
      const secret = secretOf(keys, keys.commandTimeoutSeconds);
      const rest = { secret, operation, sessionCodeField, sessionFaultPattern, path: slashed(keys.path) };
      if (method === 'session-code') return { ...rest, method };
      return method === 'cloud-platform' ? { ...rest, method, username, projectId } : { ...rest, method, username };
    });
}

type AuthKeys = {
  readonly method: AuthMethod;
  readonly username?: string | undefined;
  readonly projectId?: string | undefined;
} & { readonly [Key in `${SecretName}File` | `${SecretName}Credential`]?: string | undefined } & {
  readonly [Key in `${SecretName}Command`]?: readonly string[] | undefined;
};

const PATTERN = 'a regular expression that is quick for any text (no repetition inside of another one)';

const slashed = (path: string) => `/${path}`.replaceAll(/\/{2,}/g, '/').replace(/\/$/, '');

/** What a method needs and what it has no use for. Called with whatever could be read of the section. */
function checkMethod(keys: AuthKeys, context: z.core.$RefinementCtx<unknown>): void {
  const method = AUTH_METHODS.find((known) => known === keys.method);
  if (method === undefined) return;
  const report = (message: string, key?: string, found?: string) =>
    context.addIssue({ code: 'custom', path: key === undefined ? [] : [key], message, params: { found } });

  if (keys.username === undefined && method !== 'session-code') report('the name of the user', 'username');
  if (keys.projectId === undefined && method === 'cloud-platform') {
    report('the id of the project, which the method cloud-platform sends', 'projectId');
  }
  if (keys.projectId !== undefined && method !== 'cloud-platform') {
    report(`no such key with the method ${method} (only cloud-platform sends a project)`, 'projectId');
  }

  const fitting: readonly string[] = keysOf(secretNameOf(method));
  const given = SECRET_KEYS.filter((key) => keys[key] !== undefined);
  for (const key of given.filter((other) => !fitting.includes(other))) {
    report(`no such key with the method ${method} (its secret is one of ${fitting.join(', ')})`, key);
  }
  const sources = given.filter((key) => fitting.includes(key));
  if (sources.length !== 1) {
    const found = sources.length === 0 ? 'none of them' : sources.join(' and ');
    report(`exactly one of ${fitting.join(', ')} for the method ${method}`, undefined, found);
  }
}

function secretOf(keys: AuthKeys, timeoutMs: number): SecretSource {
  const name = secretNameOf(keys.method);
  const file = keys[`${name}File`];
  const argv = keys[`${name}Command`];
  if (file !== undefined) return { kind: 'file', path: file };
  if (argv !== undefined) return { kind: 'command', argv, timeoutMs };
  return { kind: 'credential', name: keys[`${name}Credential`] ?? '' };
}
