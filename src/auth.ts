/** The sign-in method and the source of its secret (docs/dev/soap.md 4.2); never the secret itself. */

export const AUTH_METHODS = ['openid', 'external-token', 'cloud-platform', 'password', 'session-code'] as const;

/** REST only: every call sends user name and password, without a sign-in (docs/dev/rest.md 4.1). */
export const API_KEY = 'api-key';
/** Its value is `user:password`; it replaces the sign-in (docs/dev/rest.md 4.1). */
export const API_KEY_HEADER = 'x-api-key';
/** In place of a session code: every call must send the token as `Authorization: Bearer` (docs/dev/rest.md 4.1). */
export const HEADER_AUTH_NEEDED = 'HEADER-AUTH-NEEDED';

/** What follows the reason in the message of a refused sign-in. */
export const NEXT_SIGN_IN = '; next sign-in within ';

/** The reason alone: a command does not sign in again. */
export const withoutNextSignIn = (message: string) => message.split(NEXT_SIGN_IN)[0] ?? '';

/** One of the sign-in operations; `session-code` takes an existing code. */
export type AuthMethod = (typeof AUTH_METHODS)[number] | typeof API_KEY;

/** Read again at every sign-in. */
export type SecretSource =
  | { readonly kind: 'file'; readonly path: string }
  /** `argv[0]` is the program; no shell. It has `timeoutMs` to print the secret, and gets the variables in `environment`. */
  | {
      readonly kind: 'command';
      readonly argv: readonly string[];
      readonly timeoutMs: number;
      readonly environment?: readonly string[];
    }
  /** A systemd credential: a file of this name in `$CREDENTIALS_DIRECTORY`. */
  | { readonly kind: 'credential'; readonly name: string };

/** The file that a secret is read from; undefined for a program, and for a credential without systemd. */
export function secretFileOf(
  source: SecretSource,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (source.kind === 'file') return source.path;
  const directory = env['CREDENTIALS_DIRECTORY'];
  return source.kind === 'credential' && directory ? `${directory}/${source.name}` : undefined;
}

interface CommonSettings {
  readonly secret: SecretSource;
  /** Between the base URL and the operation: starts with a slash or is empty. Null: that of docs/dev/soap.md 4.2. */
  readonly path: string | null;
  /** Null: the operation name of docs/dev/soap.md 4.2. */
  readonly operation: string | null;
  /** The path of the session code in a response object; dots separate names. */
  readonly sessionCodeField: string | null;
  /** A regular expression (flag `i`) for faults that mean a lost session. */
  readonly sessionFaultPattern: string | null;
}

export type OperationSettings = CommonSettings &
  (
    | { readonly method: 'openid' | 'external-token' | 'password'; readonly username: string }
    /** `projectId` is canonical decimal text (64-bit). */
    | { readonly method: 'cloud-platform'; readonly username: string; readonly projectId: string }
  );

export type AuthSettings =
  | OperationSettings
  | (CommonSettings & { readonly method: typeof API_KEY; readonly username: string })
  | (CommonSettings & { readonly method: 'session-code' });

export const SECRET_NAMES = ['password', 'token', 'sessionCode'] as const;
export type SecretName = (typeof SECRET_NAMES)[number];

export function secretNameOf(method: AuthMethod): SecretName {
  if (method === 'password' || method === API_KEY) return 'password';
  return method === 'session-code' ? 'sessionCode' : 'token';
}
