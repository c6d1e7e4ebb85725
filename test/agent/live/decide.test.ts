/** The table of src/agent/live/decide.ts, row by row. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { PERSISTS_MS, Symptoms } from '../../../src/agent/live/debounce.ts';
import { type Decision, decide, type Facts } from '../../../src/agent/live/decide.ts';

const INTACT = { length: 100, undisputed: 100, integrity: 'intact' } as const;
const UNCOMMITTED = { ...INTACT, undisputed: 80 } as const;
const MODIFIED = { ...INTACT, undisputed: 0, integrity: 'modified' } as const;
const LOST = { ...INTACT, undisputed: 0, integrity: 'unknown' } as const;

const SAME: Facts['found'] = { kind: 'same', at: 100 };
const HIDDEN: Facts['found'] = { kind: 'shows-less', at: 90 };
const DIFFERENT: Facts['found'] = { kind: 'different', at: 90, isByAscii: true };
const NOT_BY_ASCII: Facts['found'] = { ...DIFFERENT, isByAscii: false };
const SHORTER: Facts['found'] = { kind: 'shorter', at: 90 };

type Expected = Pick<Decision, 'kind' | 'at'> & { readonly needs?: string; readonly reason?: unknown };
type Row = readonly [
  row: number,
  what: string,
  facts: Partial<Facts> & Pick<Facts, 'found' | 'mirror'>,
  decision: Expected,
];
const undetermined = (at: number, needs: string) => ({ kind: 'undetermined', at, needs }) as const;
const reason = (words: RegExp) => expect.stringMatching(words);
/** Cut to the committed bytes, or to the equal ones. */
const cut = (at: number, words = /^its uncommitted bytes differ from the remote file: requested again from byte/) =>
  ({ kind: 'mirror-damaged', at, reason: reason(words) }) as const;
const mended = (at: number) => cut(at, /^another process changed it: requested again from byte/);

const isConfirmed = true;
const by = 'raw bytes';

const ROWS: readonly Row[] = [
  [1, 'shows all of it', { found: SAME, mirror: INTACT }, { kind: 'same', at: 100 }],
  [1, 'shows all of one whose state was lost', { found: SAME, mirror: LOST }, { kind: 'same', at: 100 }],
  [
    2,
    'hides uncommitted bytes',
    { found: HIDDEN, mirror: UNCOMMITTED },
    cut(90, /^its uncommitted bytes are not shown/),
  ],
  [
    2,
    'hides committed bytes before others',
    { found: { kind: 'shows-less', at: 70 }, mirror: UNCOMMITTED },
    cut(80, /./),
  ],
  [2, 'hides bytes of one that was changed', { found: HIDDEN, mirror: MODIFIED }, mended(90)],
  [2, 'differs in uncommitted bytes', { found: DIFFERENT, mirror: UNCOMMITTED }, cut(90)],
  [2, 'differs before others', { found: { ...DIFFERENT, at: 70 }, mirror: UNCOMMITTED }, cut(80)],
  [2, 'differs from one that was changed', { found: DIFFERENT, mirror: MODIFIED }, mended(90)],
  [3, 'hides its end', { found: HIDDEN, mirror: INTACT }, undetermined(90, 'raw-bytes')],
  [3, 'hides bytes of one whose state was lost', { found: HIDDEN, mirror: LOST }, undetermined(90, 'raw-bytes')],
  [4, 'differs', { found: DIFFERENT, mirror: INTACT }, undetermined(90, 'the-next-poll')],
  [4, 'differs, and the state was lost', { found: DIFFERENT, mirror: LOST }, undetermined(90, 'the-next-poll')],
  [4, 'ends before', { found: SHORTER, mirror: INTACT }, undetermined(90, 'the-next-poll')],
  [4, 'ends before uncommitted bytes', { found: SHORTER, mirror: UNCOMMITTED }, undetermined(90, 'the-next-poll')],
  [5, 'ends before', { found: SHORTER, mirror: UNCOMMITTED, isConfirmed }, cut(90)],
  [5, 'ends before the end of one that was changed', { found: SHORTER, mirror: MODIFIED, isConfirmed }, mended(90)],
  [6, 'differs', { found: NOT_BY_ASCII, mirror: INTACT, isConfirmed }, undetermined(90, 'raw-bytes')],
  [
    7,
    'differs',
    { found: DIFFERENT, mirror: INTACT, isConfirmed },
    { kind: 'rewritten', at: 90, reason: reason(/^its byte 90 differs from the mirror$/) },
  ],
  [
    7,
    'differs in raw bytes',
    { found: NOT_BY_ASCII, mirror: INTACT, by, isConfirmed },
    { kind: 'rewritten', at: 90, reason: reason(/, as its raw bytes show$/) },
  ],
  [
    7,
    'differs, and the state was lost',
    { found: DIFFERENT, mirror: LOST, isConfirmed },
    { kind: 'rewritten', at: 90, reason: reason(/the mirror/) },
  ],
  [
    8,
    'ends before',
    { found: SHORTER, mirror: INTACT, isConfirmed },
    { kind: 'truncated', at: 90, reason: reason(/^it has at most 90 bytes, the mirror has 100$/) },
  ],
];

test.each(ROWS)('by row %i it is decided where the remote file %s', (_, __, facts, expected) => {
  expect(decide({ by: 'text', isConfirmed: false, ...facts })).toEqual(expected);
});

test('each row of the table has a case', () => {
  const source = fs.readFileSync(new URL('../../../src/agent/live/decide.ts', import.meta.url), 'utf8');
  const table = [...source.matchAll(/^ \* {3}(\d+) /gm)].map(([, row]) => Number(row));
  expect([...new Set(ROWS.map(([row]) => row))]).toEqual(table);
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
