/** For how long a process could do nothing else, in processor time: a busy machine that lets it wait does not count. */
import { createHash } from 'node:crypto';

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
