/** Which ids are asked about, and in which order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { candidatesOf, shiftBetween, specificationsIn } from '../../../src/agent/tasks/probe.ts';
import { type JobId, parseTaskId, type TaskId } from '../../../src/job.ts';
import { numRuns } from '../../support/property-runs.ts';

const LAST = 2n ** 63n - 1n;
const id = fc.oneof(fc.bigInt({ min: 1n, max: 5_000n }), fc.bigInt({ min: 1n, max: LAST }));
const ids = fc.uniqueArray(id, { maxLength: 30 });
const shift = fc.oneof(fc.bigInt({ min: -3_000n, max: 3_000n }), fc.bigInt({ min: -LAST, max: LAST }));
const clues = fc.record({
  jobId: id.map((found) => String(found) as JobId),
  specifications: ids,
  shift: fc.option(shift, { nil: undefined }),
  known: ids.map((found) => found.map((one) => String(one) as TaskId)),
});

describe('candidates', () => {
  it('are ids, each once, and none that is known', () => {
    fc.assert(
      fc.property(clues, (given) => {
        const found = [...candidatesOf(given)];
        expect(new Set(found).size).toBe(found.length);
        expect(found.filter((one) => parseTaskId(one) !== one || one.startsWith('-') || one === '0')).toEqual([]);
        const all = new Set(found);
        expect(given.known.filter((task) => all.has(task))).toEqual([]);
      }),
      numRuns(20),
    );
  });

  it('begin with the listed numbers, moved by what was learned', () => {
    fc.assert(
      fc.property(clues, (given) => {
        const { specifications, shift: moved = 0n } = given;
        const likely = specifications
          .map((one) => one + moved)
          .filter((one) => one > 0n && one <= LAST && !given.known.includes(String(one) as TaskId))
          .map(String);
        const found = candidatesOf(given);
        const first = likely.map(() => String(found.next().value));
        expect(first).toEqual(likely);
      }),
      numRuns(300),
    );
  });

  it('have what is near to a listed number, a known task, or the job', () => {
    fc.assert(
      fc.property(clues, fc.bigInt({ min: -2_000n, max: 2_000n }), (given, away) => {
        const anchors = [
          ...given.specifications.slice(0, 1),
          BigInt(given.jobId),
          ...given.known.slice(0, 1).map(BigInt),
        ];
        const near = anchors.slice(-1).map((anchor) => anchor + away);
        // Only the outermost of many are looked around.
        if (given.known.length > 1) return;
        const all = new Set<string>([...candidatesOf(given), ...given.known]);
        for (const one of near) if (one > 0n && one <= LAST) expect(all.has(String(one))).toBe(true);
      }),
      numRuns(60),
    );
  });
});

it('the numbers of a listing are found whatever its names look like', async () => {
  const listed = ['/9001/a', '9002///b', '9003/c/d', '/0009001/e', '/9004', 'x/9005/f', '/-7/g', '/0/h', '/9001/i', ''];
  expect(await specificationsIn(listed)).toEqual([9001n, 9002n, 9003n]);
  const many = function* () {
    for (let one = 1; one <= 30_000; one++) yield `/${one}/a`;
  };
  expect(await specificationsIn(many())).toHaveLength(10_000);
});

it('what leads from each specification to its task is learned if it is the same for all', () => {
  const taskIds = (...found: bigint[]) => found.map((one) => String(one) as TaskId);
  expect(shiftBetween([7n, 9n], taskIds(12n, 10n))).toBe(3n);
  expect(shiftBetween([7n], taskIds(7n))).toBe(0n);
  expect(shiftBetween([7n, 9n], taskIds(10n, 13n))).toBeUndefined();
  expect(shiftBetween([7n, 9n], taskIds(10n))).toBeUndefined();
  expect(shiftBetween([], [])).toBeUndefined();
});
