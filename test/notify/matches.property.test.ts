/** Each matching line is found once: wherever polls cut it, over rotations, kills at any commit, and restarts. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { numRuns } from '../support/property-runs.ts';
import { removedDirectory } from '../support/temp-directory.ts';
import { KEEP, NotifyPlace, ruleOf } from './place.ts';

type Step =
  | { readonly kind: 'grow'; readonly text: string }
  | {
      readonly kind: 'rotate';
      readonly how: 'truncated' | 'rewritten';
      readonly read: 'between' | 'meanwhile' | 'not';
      readonly turns: number;
    }
  | { readonly kind: 'tick' }
  /** It is killed after so many more transactions, and another process starts. */
  | { readonly kind: 'kill'; readonly after: number };

const piece = fc.constantFrom('an ', 'ERROR', 'ERR', 'OR', 'é', '\n', ' line\n', 'ERROR 7\n', '\r', '\n\n');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('grow' as const),
      text: fc.array(piece, { maxLength: 12 }).map((parts) => parts.join('')),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('rotate' as const),
      how: fc.constantFrom('truncated', 'rewritten'),
      read: fc.constantFrom('between', 'meanwhile', 'not'),
      turns: fc.nat(25),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'tick' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('kill' as const), after: fc.nat(4) }) },
);

const linesOf = (text: string) => text.split('\n').filter((line) => line.includes('ERROR')).length;

it('matches of a live file are counted exactly', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), (steps) =>
      removedDirectory(async (directory) => {
        const rule = ruleOf({ on: ['match', 'truncated', 'rewritten'], match: 'ERROR' });
        const place = new NotifyPlace(directory, [rule]);
        try {
          place.start();
          place.watch();
          let [current, expected, truncated, rewritten] = ['', 0, 0, 0];
          let unread = 0;
          for (const one of steps) {
            if (one.kind === 'grow') {
              place.grow(one.text);
              current += one.text;
            } else if (one.kind === 'rotate') {
              // What is older than the generations that are kept is not read any more.
              if (unread === KEEP - 1) await place.tick();
              unread = one.read === 'between' || unread === KEEP - 1 ? 0 : unread + 1;
              const reading = one.read === 'meanwhile' ? place.tick() : undefined;
              await place.rotate(one.how, async () => {
                if (one.read === 'between') await place.tick();
                for (let turn = 0; turn < one.turns && reading !== undefined; turn++)
                  await new Promise((resolve) => setImmediate(resolve));
              });
              place.grow('ERROR');
              await reading;
              expected += linesOf(current);
              if (one.how === 'truncated') truncated += 1;
              else rewritten += 1;
              current = 'ERROR';
            } else if (one.kind === 'tick') await place.tick();
            else {
              place.start(one.after);
              await place.tick();
              place.start();
            }
          }
          place.start();
          await place.tick();
          await place.tick();
          // A last line without an end is one when nothing comes any more.
          const complete = current.slice(0, current.lastIndexOf('\n') + 1);
          const sum = (type: string) =>
            place.waiting.filter((event) => event.type === type).reduce((total, { count }) => total + count, 0);
          expect(sum('match')).toBe(expected + linesOf(complete));
          expect([sum('truncated'), sum('rewritten')]).toEqual([truncated, rewritten]);
          place.setState('settled');
          await place.tick();
          expect(sum('match')).toBe(expected + linesOf(current));
        } finally {
          place.close();
        }
      }),
    ),
    {
      ...numRuns(300),
      // Eleven events at once, of two types.
      examples: [
        [
          [
            { kind: 'grow', text: 'ERROR\n'.repeat(10) },
            { kind: 'rotate', how: 'truncated', read: 'not', turns: 0 },
          ],
        ],
      ],
    },
  );
});
