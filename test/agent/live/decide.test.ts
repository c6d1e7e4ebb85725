/** What src/agent/live/decide.ts decides by all facts, as is written in decide.txt. */
import path from 'node:path';
import { expect, test } from 'vitest';
import { PERSISTS_MS, Symptoms } from '../../../src/agent/live/debounce.ts';
import { decide, type Facts } from '../../../src/agent/live/decide.ts';
import { expectCases } from '../../support/errors.ts';

const INTACT = { length: 100, undisputed: 100, integrity: 'intact' } as const;
const MIRRORS: Readonly<Record<string, Facts['mirror']>> = {
  intact: INTACT,
  'intact, from byte 80 on uncommitted': { ...INTACT, undisputed: 80 },
  modified: { ...INTACT, undisputed: 0, integrity: 'modified' },
  'of a lost state': { ...INTACT, undisputed: 0, integrity: 'unknown' },
};

const FOUND: Readonly<Record<string, Facts['found']>> = {
  'shows all of it': { kind: 'same', at: 100 },
  'hides byte 90': { kind: 'shows-less', at: 90 },
  'hides byte 70': { kind: 'shows-less', at: 70 },
  'differs at byte 90': { kind: 'different', at: 90, isByAscii: true },
  'differs at byte 70': { kind: 'different', at: 70, isByAscii: true },
  'differs at byte 90, not by ASCII': { kind: 'different', at: 90, isByAscii: false },
  'ends at byte 90': { kind: 'shorter', at: 90 },
};

test('each remote file that is compared with a mirror leads to what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'decide.txt'), (written) => {
    const found = FOUND[written] as Facts['found'];
    return Object.entries(MIRRORS).flatMap(([what, mirror]) =>
      [false, true].flatMap((isConfirmed) =>
        (['text', 'raw bytes'] as const).map((by) => {
          const decision = decide({ found, mirror, isConfirmed, by });
          return `${what}, by ${by}${isConfirmed ? ', confirmed' : ''}: ${JSON.stringify(decision)}`;
        }),
      ),
    );
  });
});

test('a symptom counts when it lasts, whatever others come and go meanwhile', () => {
  let now = 0;
  const symptoms = new Symptoms(() => now);
  const kinds = Object.keys(PERSISTS_MS) as (keyof typeof PERSISTS_MS)[];
  for (const kind of kinds) expect(symptoms.note(kind, 100), kind).toBe(false);
  for (const kind of kinds) {
    now = PERSISTS_MS[kind] - 1;
    if (now >= 0) expect(symptoms.note(kind, 100), kind).toBe(false);
    now = PERSISTS_MS[kind];
    expect(symptoms.note(kind, 100), kind).toBe(true);
  }
  expect(symptoms.note('stuck', 101), 'of another length').toBe(false);
});
