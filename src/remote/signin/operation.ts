/** The four sign-in operations: where they are and what is sent (docs/interface.md 4.2). */
import type { SecretSource } from './secret.ts';

interface CommonSettings {
  readonly secret: SecretSource;
  /** Between the base URL and the operation: starts with a slash or is empty. */
  readonly path: string;
  /** Instead of the operation name in docs/interface.md 4.2. */
  readonly operation: string | null;
  /** Where the session code stands in an answer that is an object; dots lead into inner objects. */
  readonly sessionCodeField: string | null;
}

/** A user who signs in by one of the operations. `projectId` is decimal text. */
export type OperationSettings = CommonSettings &
  (
    | { readonly method: 'openid' | 'external-token' | 'password'; readonly username: string }
    | { readonly method: 'cloud-platform'; readonly username: string; readonly projectId: string }
  );

/** How to come to a session; `session-code` takes a ready code without any operation. */
export type SignInSettings = OperationSettings | (CommonSettings & { readonly method: 'session-code' });

const OPERATION_NAMES = {
  openid: 'AuthenticateUserOpenId',
  'external-token': 'AuthenticateExternalToken',
  'cloud-platform': 'AuthenticateUserCloudPlatform',
  password: 'AuthenticateUserAndPassword',
} as const;

/** What the secret of a method is, for messages. */
export function secretNameOf(method: SignInSettings['method']): string {
  if (method === 'session-code') return 'session code';
  return method === 'password' ? 'password' : 'token';
}

/** {base_url}/service/UserAndLimitationManagement/<OperationName>, or what the settings have instead. */
export function urlOf(baseUrl: string, settings: OperationSettings): string {
  const operation = settings.operation ?? OPERATION_NAMES[settings.method];
  return `${baseUrl.replace(/\/+$/, '')}${settings.path}/${operation}`;
}

/** The body, as compact as it can be: some servers take 148 bytes (docs/servers.md 6.3). */
export function bodyOf(settings: OperationSettings, secret: string): string {
  const username = JSON.stringify(settings.username);
  const secretField = settings.method === 'password' ? 'Password' : 'OpenIdAccessToken';
  const credentials = `"Credentials":{"Username":${username},"${secretField}":${JSON.stringify(secret)}}`;
  // The id goes out as it is: a JavaScript number is wrong beyond 2^53.
  return settings.method === 'cloud-platform'
    ? `{${credentials},"ProjectId":${settings.projectId}}`
    : `{${credentials}}`;
}
