/** One sign-in by one of the four operations (docs/interface.md 4.2). */
import type { Grant } from '../../agent/ports.ts';
import type { OperationSettings } from '../../auth.ts';
import { JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { type HttpClient, readBeginning, readBody } from '../http/http-client.ts';
import { readGrant } from './answer.ts';
import { refusalOf } from './refusal.ts';

const MAX_ANSWER_BYTES = 64 * 1024;
/** Enough of an error page to quote it; how long it is does not matter. */
const MAX_QUOTED_BYTES = 8192;

/** Between {base_url} and the operation (docs/interface.md 4.2). */
const USUAL_PATH = '/service/UserAndLimitationManagement';

const OPERATION_NAMES = {
  openid: 'AuthenticateUserOpenId',
  'external-token': 'AuthenticateExternalToken',
  'cloud-platform': 'AuthenticateUserCloudPlatform',
  password: 'AuthenticateUserAndPassword',
} as const;

export interface OperationOptions {
  /** {base_url}. */
  readonly baseUrl: string | null;
  readonly http: Pick<HttpClient, 'request'>;
  readonly secret: string;
  /** `the password in the file /etc/agent/password` */
  readonly secretPlace: string;
  /** Nothing of them goes into a message. */
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}

/** @throws JobtailError those of `readGrant`, `refusalOf` and the HTTP client; config */
export async function callOperation(auth: OperationSettings, options: OperationOptions): Promise<Grant> {
  const { baseUrl, http, secret, secretPlace, secrets, signal } = options;
  if (baseUrl === null) throw new JobtailError('config', 'service.baseUrl is missing', { hint: 'set service.baseUrl' });
  const { method, path, operation, sessionCodeField } = auth;
  const url = `${baseUrl.replace(/\/+$/, '')}${path ?? USUAL_PATH}/${operation ?? OPERATION_NAMES[method]}`;
  // Texts of refusals are to be understood.
  const headers = { accept: 'application/json', 'accept-language': 'en', 'Content-Type': 'application/json' };
  const answer = await http.request({ method: 'POST', url, headers, body: bodyOf(auth, secret), signal });
  const { status, contentType, retryAfterMs } = answer;
  if (status < 200 || status > 299) {
    const text = (await readBeginning(answer, MAX_QUOTED_BYTES)).toString();
    throw refusalOf({ status, retryAfterMs, text }, { url, secrets, secretPlace });
  }
  const text = new TextDecoder().decode(await readBody(answer, MAX_ANSWER_BYTES));
  return readGrant({ text, contentType }, { secret, secrets, isToken: method !== 'password', sessionCodeField });
}

/** As compact as it can be: some servers take 148 bytes (docs/servers.md 6.3). */
function bodyOf(auth: OperationSettings, secret: string): string {
  const username = JSON.stringify(auth.username);
  const secretField = auth.method === 'password' ? 'Password' : 'OpenIdAccessToken';
  const credentials = `"Credentials":{"Username":${username},"${secretField}":${JSON.stringify(secret)}}`;
  // The id goes out as it is: a JavaScript number is wrong beyond 2^53.
  return auth.method === 'cloud-platform' ? `{${credentials},"ProjectId":${auth.projectId}}` : `{${credentials}}`;
}
