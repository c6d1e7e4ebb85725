/** Waiting for a condition of another process, which can only be looked at again and again. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks: at least so long, and so many times as long as a look takes, for what is waited for needs the processor. */
const LOOK_MS = 25;
const LOOKS = 4;
/** Far beyond what anything here takes; a busy machine must not fail a test. */
const LIMIT_MS = 120_000;

/** What `look` finds, as soon as it is neither undefined nor false; `what` says what was waited for if it never comes. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  limitMs = LIMIT_MS,
): Promise<Exclude<T, undefined | false>> {
  for (const deadline = performance.now() + limitMs; ; ) {
    const begun = performance.now();
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    const now = performance.now();
    if (now < deadline) await sleep(Math.max(LOOK_MS, LOOKS * (now - begun)));
    else throw new Error(`waited ${limitMs / 1000} s in vain for ${what}`);
  }
}
