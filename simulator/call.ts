/** One call of an operation, over either protocol: fault rules, the session, one call at a time, the answer. */
import { type Answer, delay, type Exchange, sendAnswer, spoil } from './exchange.ts';
import type { FaultRule, FaultSubject } from './faults.ts';
import type { SandboxPlace } from './place.ts';
import type { SandboxUser } from './signin/sessions.ts';

export interface ServedCall {
  readonly subject: FaultSubject;
  /** The media type of answers. */
  readonly type: string;
  /** Who calls. Throws what the protocol makes of a session that is lost. */
  user(): SandboxUser;
  answer(user: SandboxUser, rules: readonly FaultRule[]): Answer | Promise<Answer>;
}

/** Serves it; what it throws is for the protocol to answer, unless the answer has begun. */
export async function serveCall(exchange: Exchange, call: ServedCall, place: SandboxPlace): Promise<void> {
  const rules = place.faults.take(call.subject);
  if (await spoil(exchange, rules, call.type)) return;
  const user = call.user();
  await place.pipeReads.over(user, exchange.signal);
  await delay(exchange, rules);
  await sendAnswer(exchange, await call.answer(user, rules), rules);
}
