/** The addresses of the four sign-ins: from an HTTP request to an answer, with the fault rules for `SignIn`. */
import { delay, type Exchange, readBody, sendAnswer, spoil } from '../exchange.ts';
import type { Faults } from '../faults.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import type { Traffic } from '../traffic.ts';
import { type SignInPlace, signIn } from './sign-in.ts';

export interface SignInEndpointPlace extends SignInPlace {
  readonly faults: Faults;
  readonly traffic: Traffic;
}

/** Handles one sign-in; `operation` is the name in docs/interface.md 4.2. */
export async function handleSignIn(exchange: Exchange, operation: string, place: SignInEndpointPlace): Promise<void> {
  const { traffic, faults, habits } = place;
  const { request } = exchange;
  traffic.signIns += 1;
  try {
    const body = await readBody(request, habits.maxSignInBytes);
    const rules = faults.take({ operation: 'SignIn' });
    if (await spoil(exchange, rules)) return;
    await delay(exchange, rules);
    const { type, text } = signIn({ operation, headers: request.headers, body }, place);
    await sendAnswer(exchange, { status: 200, headers: { 'content-type': type }, body: text }, rules);
  } catch (thrown) {
    traffic.signInsRefused += 1;
    throw thrown instanceof ServiceFault ? new HttpRefusal(400, thrown.message) : thrown;
  }
}
