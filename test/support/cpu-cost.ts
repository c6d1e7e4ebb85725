/** What work costs in processor time: a busy machine that lets the process wait does not count. */
import { createHash } from 'node:crypto';

const TRIES = 3;

/** The least of some tries, in milliseconds: what else the process does then (compiling, collecting garbage) is in none. */
export function cpuMs(work: () => unknown): number {
  const tries = Array.from({ length: TRIES }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...tries);
}

/** Less is a matter of luck to measure. */
const LEAST_MS = 1;
/** Of eight times as much; what grows with the square takes 64 times as long. */
const GROWS = 8;
const MAX_TIMES = 24;

/** How much longer work of eight times the size takes; `size`: the smaller one. Too much is measured again. */
export function growthOf(size: number, prepare: (size: number) => () => unknown): { times: number; isLinear: boolean } {
  let times = Number.POSITIVE_INFINITY;
  for (let again = 0; times >= MAX_TIMES && again < 4; again += 1) {
    times = cpuMs(prepare(size * GROWS)) / Math.max(LEAST_MS, cpuMs(prepare(size)));
  }
  return { times, isLinear: times < MAX_TIMES };
}

const PIECE = Buffer.alloc(1024 * 1024);

/** The longest turn of the event loop until it is asked for. */
export function watchTurns(): { longestMs(): number } {
  let longest = 0;
  let before = process.cpuUsage();
  let immediate = setImmediate(function turn() {
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.cpuUsage();
    immediate = setImmediate(turn);
  });
  return {
    longestMs: () => {
      clearImmediate(immediate);
      return longest;
    },
  };
}

/** How much longer a fixed work takes now than the 100 ms it takes on an idle machine; neighbours slow a processor, too. */
export function slowness(): number {
  const before = process.cpuUsage();
  const hash = createHash('sha256');
  for (let piece = 0; piece < 160; piece += 1) hash.update(PIECE);
  hash.digest();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / 100;
}
