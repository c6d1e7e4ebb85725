/**
 * The four sign-ins (docs/dev/soap.md 4.2): exact JSON bodies in, a session code out. Fault rules for `SignIn` apply.
 */
import type { IncomingHttpHeaders } from 'node:http';
import * as v from 'valibot';
import { delay, type Exchange, readBody, readMediaType, sendAnswer, spoil } from '../exchange.ts';
import type { SandboxPlace } from '../place.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import { userWith } from './credentials.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const MAX_BODY_BYTES = 64 * 1024;

interface SignInMethod {
  readonly secret: 'Password' | 'OpenIdAccessToken';
  readonly project: boolean;
}

/** The operations of docs/dev/soap.md 4.2. */
const SIGN_INS: Readonly<Record<string, SignInMethod>> = {
  AuthenticateUserOpenId: { secret: 'OpenIdAccessToken', project: false },
  AuthenticateExternalToken: { secret: 'OpenIdAccessToken', project: false },
  AuthenticateUserCloudPlatform: { secret: 'OpenIdAccessToken', project: true },
  AuthenticateUserAndPassword: { secret: 'Password', project: false },
};

/** The sign-in that a path stands for, by the name in docs/dev/soap.md 4.2; undefined if it is none. */
export function signInOf(path: string): string | undefined {
  return Object.keys(SIGN_INS).find((name) => path === `/service/UserAndLimitationManagement/${name}`);
}

/** Handles one sign-in; `operation` is the name in docs/dev/soap.md 4.2. */
export async function handleSignIn(exchange: Exchange, operation: string, place: SandboxPlace): Promise<void> {
  const { traffic, faults } = place;
  const method = SIGN_INS[operation];
  if (method === undefined) throw new HttpRefusal(404);
  if (exchange.request.method !== 'POST') throw new HttpRefusal(405, '', { allow: 'POST' });
  traffic.signIns += 1;
  try {
    const body = await readBody(exchange.request, MAX_BODY_BYTES);
    const rules = faults.take({ operation: 'SignIn' });
    if (await spoil(exchange, rules, JSON_TYPE)) return;
    await delay(exchange, rules);
    checkHeaders(exchange.request.headers);
    const answer = signIn(readCredentials(body, method), method, place);
    await sendAnswer(exchange, { status: 200, headers: { 'content-type': JSON_TYPE }, body: answer }, rules);
  } catch (thrown) {
    traffic.signInsRefused += 1;
    throw thrown instanceof ServiceFault ? new HttpRefusal(400, thrown.message) : thrown;
  }
}

type Shown = ReturnType<typeof readCredentials>;

/** The response to credentials. */
function signIn({ username, secret }: Shown, method: SignInMethod, place: SandboxPlace) {
  const { habits, users, sessions } = place;
  const user = userWith({ username, secret, kind: method.secret === 'Password' ? 'password' : 'token' }, users);
  if (user === undefined) throw new HttpRefusal(401, 'Wrong username or password, or token not accepted');
  const byHeader = habits.signInAnswer === 'header' && method.secret === 'OpenIdAccessToken';
  const code = sessions.begin(user, byHeader ? secret : undefined);
  return JSON.stringify(byHeader ? 'HEADER-AUTH-NEEDED' : code);
}

function checkHeaders(headers: IncomingHttpHeaders): void {
  const { type } = readMediaType(headers['content-type'] ?? '');
  if (type !== 'application/json') throw wrong(`expected Content-Type application/json, found ${type || 'none'}`);
  const { accept = 'none' } = headers;
  if (accept !== 'application/json') throw wrong(`expected accept application/json, found ${accept}`);
}

/** An error of the request is a 400 with its description. */
function readCredentials(body: Buffer, { secret, project }: SignInMethod) {
  type Texts = Readonly<Record<string, string>>;
  const Credentials: v.GenericSchema<Texts> = v.strictObject({ Username: v.string(), [secret]: v.string() });
  const ProjectId = v.pipe(v.number(), v.integer());
  const schema = project ? v.strictObject({ Credentials, ProjectId }) : v.strictObject({ Credentials });
  const { success, output, issues } = v.safeParse(schema, parseJson(body));
  if (!success) throw wrong(v.summarize(issues));
  const { ['Username']: username = '', [secret]: shown = '' } = output.Credentials;
  return { username, secret: shown };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw wrong('expected JSON in the body');
  }
}

function wrong(what: string): HttpRefusal {
  return new HttpRefusal(400, what);
}
