/**
 * One sign-in by one of the four operations (docs/dev/soap.md 4.2). The form of the response is not specified;
 * docs/dev/servers.md 3.1 lists what servers send: a JSON string, plain text, an object, or a word that requests the token
 * in a header.
 */
import type { Grant } from '../../agent/ports/server.ts';
import { HEADER_AUTH_NEEDED, type OperationSettings } from '../../auth.ts';
import { JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { type HttpSender, readBody, readRefusal } from '../http/http-client.ts';
import { signInRefusal } from './refusal.ts';

const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_QUOTED_BYTES = 8192;

/** Between {base_url} and the operation (docs/dev/soap.md 4.2). */
const USUAL_PATH = '/service/UserAndLimitationManagement';

const OPERATION_NAMES = {
  openid: 'AuthenticateUserOpenId',
  'external-token': 'AuthenticateExternalToken',
  'cloud-platform': 'AuthenticateUserCloudPlatform',
  password: 'AuthenticateUserAndPassword',
} as const;

interface OperationOptions {
  readonly baseUrl: string | null;
  readonly http: HttpSender;
  readonly secret: string;
  readonly secretPlace: string;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}

/** @throws JobtailError those of `readGrant`, `signInRefusal` and the HTTP client; config */
export async function callOperation(auth: OperationSettings, options: OperationOptions): Promise<Grant> {
  const { baseUrl, http, secret, secretPlace, secrets, signal } = options;
  if (baseUrl === null) throw new JobtailError('config', 'service.baseUrl is missing', { hint: 'set service.baseUrl' });
  const { method, path, operation, sessionCodeField } = auth;
  const url = `${baseUrl.replace(/\/+$/, '')}${path ?? USUAL_PATH}/${operation ?? OPERATION_NAMES[method]}`;
  // Refusals in English can be interpreted.
  const headers = { accept: 'application/json', 'accept-language': 'en', 'Content-Type': 'application/json' };
  const response = await http.request({ method: 'POST', url, headers, body: bodyOf(auth, secret), signal });
  const { status, contentType } = response;
  if (status < 200 || status > 299) {
    const text = (await readRefusal(response, MAX_QUOTED_BYTES)).toString();
    throw signInRefusal(response, text, { url, secrets, secretPlace });
  }
  const text = new TextDecoder().decode(await readBody(response, MAX_RESPONSE_BYTES));
  return readGrant({ text, contentType }, { secret, secrets, isToken: method !== 'password', sessionCodeField });
}

/** Without blanks: some servers accept 148 bytes (docs/dev/servers.md 6.3). */
function bodyOf(auth: OperationSettings, secret: string): string {
  const username = JSON.stringify(auth.username);
  const secretField = auth.method === 'password' ? 'Password' : 'OpenIdAccessToken';
  const credentials = `"Credentials":{"Username":${username},"${secretField}":${JSON.stringify(secret)}}`;
  // The id is inserted as text: a JavaScript number is wrong beyond 2^53.
  return auth.method === 'cloud-platform' ? `{${credentials},"ProjectId":${auth.projectId}}` : `{${credentials}}`;
}

/** Names of the session code in an object, the likeliest first; compared without case, `_` and `-`. */
const USUAL_NAMES = ['sessioncode', 'session', 'sessionid', 'token', 'accesstoken', 'authtoken', 'sessiontoken'];

interface SignInText {
  readonly text: string;
  readonly contentType: string;
}

interface GrantRules {
  /** The sent secret, for servers that request the token as a bearer token. */
  readonly secret: string;
  readonly secrets: Secrets;
  readonly isToken: boolean;
  /** The path of the session code in an object; null: the usual names. */
  readonly sessionCodeField: string | null;
}

/** The grant in a response. @throws JobtailError malformed, unexpected-answer: with its form, never a value */
function readGrant(response: SignInText, rules: GrantRules): Grant {
  const value = parsed(response);
  const code = typeof value === 'string' ? value : codeIn(value, rules.sessionCodeField);
  if (code === HEADER_AUTH_NEEDED) return bearerGrant(rules);
  // Visible ASCII without blanks: a sentence such as "wrong password" is no session code.
  if (code !== undefined && /^[!-~]+$/.test(code)) return { kind: 'session', code };
  throw noCode(shapeOf(value, rules));
}

const FIELD = 'set auth.sessionCodeField to the field with the session code, or check service.baseUrl and auth.path';
const ADDRESS = 'check service.baseUrl and auth.path: a web server or a page for signing in may be there';

function noCode(what: string, hint = FIELD): JobtailError {
  return new JobtailError('unexpected-answer', `the sign-in answered with no session code but ${what}`, { hint });
}

function bearerGrant({ secret, isToken }: GrantRules): Grant {
  if (!isToken) {
    throw new JobtailError(
      'unexpected-answer',
      'the service wants a token in a header, but the sign-in had a password',
      {
        hint: 'set auth.method to one that takes a token: openid, external-token or cloud-platform',
      },
    );
  }
  if (!/^[!-~]+$/.test(secret)) {
    throw new JobtailError('secret-unavailable', 'the token has characters that no header can carry', {
      hint: 'check the file or the command of the token',
    });
  }
  return { kind: 'bearer', token: secret };
}

function parsed({ text, contentType }: SignInText): unknown {
  const body = text.trim();
  try {
    return JSON.parse(body) as unknown;
  } catch {
    if (isBareCode(body)) return body;
    if (body === '') throw noCode('nothing');
    if (body.startsWith('<')) throw noCode('a page of HTML or XML', ADDRESS);
    if (!contentType.includes('json')) throw noCode(`text of ${body.length} characters that is no JSON`);
  }
  throw new JobtailError('malformed', `the sign-in answered with ${body.length} characters that are broken JSON`, {
    hint: 'the response may have been cut on its way; check the service',
  });
}

/** A session code as plain text: one word with digits, or the word that requests a header. */
function isBareCode(body: string): boolean {
  return body === HEADER_AUTH_NEEDED || /^\{?(?=[^0-9]*[0-9])[A-Za-z0-9._~+/=-]{16,4096}\}?$/.test(body);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function codeIn(value: unknown, field: string | null): string | undefined {
  if (!isObject(value)) return undefined;
  if (field !== null) return textOf(fieldIn(value, field));
  for (const object of [value, ...Object.values(value).filter(isObject)]) {
    for (const name of USUAL_NAMES) {
      const key = Object.keys(object).find((other) => other.toLowerCase().replaceAll(/[_-]/g, '') === name);
      const code = key === undefined ? undefined : textOf(object[key]);
      if (code !== undefined) return code;
    }
  }
  return undefined;
}

/** The value at `data.code`: first as one name, then as a path. */
function fieldIn(object: Record<string, unknown>, field: string): unknown {
  if (Object.hasOwn(object, field)) return object[field];
  let value: unknown = object;
  for (const name of field.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

/** Types and names of keys, two levels deep. */
function shapeOf(value: unknown, rules: GrantRules, depth = 0): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return value === '' ? 'an empty text' : `a text of ${value.length} characters`;
  if (!isObject(value)) return `a ${typeof value}`;
  const keys = Object.keys(value);
  if (keys.length === 0 || depth === 2) return keys.length === 0 ? 'an empty object' : 'an object';
  const shown = keys.slice(0, 20).map((key) => {
    // A key may be the session code: only a word counts as a name.
    const name = /^[A-Za-z][A-Za-z_-]{0,39}$/.test(key)
      ? `"${rules.secrets.hide(key)}"`
      : `a key of ${key.length} characters`;
    return `${name} (${shapeOf(value[key], rules, depth + 1)})`;
  });
  return `an object with ${shown.join(', ')}${keys.length > shown.length ? ', ...' : ''}`;
}
