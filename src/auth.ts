/** How the user signs in (docs/interface.md 4.2): the method, and where its secret is. The secret itself is never in here. */

export const AUTH_METHODS = ['openid', 'external-token', 'cloud-platform', 'password', 'session-code'] as const;

/** Over REST alone: user name and password are shown with every call, and there is no sign-in (docs/rest.md 4.1). */
export const API_KEY = 'api-key';

/** One of the sign-in operations; `session-code` takes a ready code instead. */
export type AuthMethod = (typeof AUTH_METHODS)[number] | typeof API_KEY;

/** Where a password, token or session code is read from, anew at every sign-in. */
export type SecretSource =
  | { readonly kind: 'file'; readonly path: string }
  /** `argv[0]` is the program; no shell. It has `timeoutMs` to print the secret. */
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly timeoutMs: number }
  /** A systemd credential: a file of this name in `$CREDENTIALS_DIRECTORY`. */
  | { readonly kind: 'credential'; readonly name: string };

interface CommonSettings {
  readonly secret: SecretSource;
  /** Between the base URL and the operation: starts with a slash or is empty. Null: that of docs/interface.md 4.2. */
  readonly path: string | null;
  /** Instead of the operation name in docs/interface.md 4.2. */
  readonly operation: string | null;
  /** Where the session code stands in an answer that is an object; dots lead into inner objects. */
  readonly sessionCodeField: string | null;
  /** Text of a regular expression (compile with the flag `i`): a fault that matches means a lost session. */
  readonly sessionFaultPattern: string | null;
}

/** A user who signs in by one of the operations. */
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

/** What the secret of a method is called. */
export function secretNameOf(method: AuthMethod): SecretName {
  if (method === 'password' || method === API_KEY) return 'password';
  return method === 'session-code' ? 'sessionCode' : 'token';
}
