/** The sign-ins of a release (docs/dev/rest.md 4.1). Fault rules for `SignIn` apply. */

import { HEADER_AUTH_NEEDED } from '../../src/auth.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import { delay, type Exchange, sendAnswer, spoil } from '../exchange.ts';
import type { SandboxPlace } from '../place.ts';
import { type Credentials, userWith } from '../signin/credentials.ts';
import type { SandboxUser } from '../signin/sessions.ts';
import type { SignInMethod } from './addresses.ts';
import { Arguments } from './arguments.ts';
import { answerOf, JSON_TYPE } from './call.ts';
import { RestFailure } from './problems.ts';

/** Of the sign-in with an external token, in all releases. */
const MAX_LEXIS_BYTES = 2048;

function maxBytesOf(method: SignInMethod, { maxPasswordBytes, maxTokenBytes }: Release): number {
  if (method === 'password') return maxPasswordBytes;
  return method === 'external-token' ? MAX_LEXIS_BYTES : maxTokenBytes;
}

interface SignedIn {
  readonly user: SandboxUser;
  readonly secret: string;
}

/** Throws the failures of the release. */
export async function handleSignIn(
  exchange: Exchange,
  method: SignInMethod,
  release: Release,
  place: SandboxPlace,
): Promise<void> {
  const { traffic, faults } = place;
  traffic.signIns += 1;
  try {
    const maxBytes = maxBytesOf(method, release);
    const given = await Arguments.ofBody(exchange.request, maxBytes, release);
    const rules = faults.take({ operation: 'SignIn' });
    if (await spoil(exchange, rules, JSON_TYPE)) return;
    await delay(exchange, rules);
    const shown = signedInBy(given, method, place);
    await place.pipeReads.over(shown.user, exchange.signal);
    await sendAnswer(exchange, answerOf(answerTo(shown, method, release, place)), rules);
  } catch (thrown) {
    traffic.signInsRefused += 1;
    throw thrown;
  }
}

/** What a sign-in shows. Throws what the releases answer where it is wrong. */
function signedInBy(given: Arguments, method: SignInMethod, place: SandboxPlace): SignedIn {
  const kind = method === 'password' ? 'password' : 'token';
  const credentials = given.object('Credentials');
  if (credentials === undefined) throw new RestFailure('unexpected');
  const secret = credentials.text(kind === 'password' ? 'Password' : 'OpenIdAccessToken') ?? '';
  return { secret, user: signedIn({ username: credentials.text('Username') ?? '', secret, kind }, place) };
}

function answerTo({ user, secret }: SignedIn, method: SignInMethod, release: Release, place: SandboxPlace): unknown {
  if (method === 'cloud-platform') {
    return { ApplicationCredentialsId: '5f1e2a', ApplicationCredentialsSecret: 'no session code' };
  }
  const byHeader = release.headers && method !== 'password' && place.habits.signInAnswer === 'header';
  const code = place.sessions.begin(user, byHeader ? secret : undefined);
  return byHeader ? HEADER_AUTH_NEEDED : code;
}

/** Who shows a name and a secret. Throws what the releases answer to a wrong one of either. */
function signedIn(credentials: Credentials, { users }: Pick<SandboxPlace, 'users'>): SandboxUser {
  const user = userWith(credentials, users);
  if (user !== undefined) return user;
  const { username } = credentials;
  throw new RestFailure(users.some((one) => one.username === username) ? 'wrongSecret' : 'unknownUser', username);
}
