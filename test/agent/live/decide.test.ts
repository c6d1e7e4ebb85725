/** The table of src/agent/live/decide.ts, row by row. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { type Decision, decide, type Facts } from '../../../src/agent/live/decide.ts';

const INTACT = { length: 100, undisputed: 100, integrity: 'intact' } as const;
const UNCOMMITTED = { ...INTACT, undisputed: 80 } as const;
const MODIFIED = { ...INTACT, undisputed: 0, integrity: 'modified' } as const;
const LOST = { ...INTACT, undisputed: 0, integrity: 'unknown' } as const;

const SAME: Facts['shown'] = { kind: 'same', at: 100, open: false };
const OPEN: Facts['shown'] = { kind: 'same', at: 98, open: true };
const DIFFERENT: Facts['shown'] = { kind: 'different', at: 90 };
const SHORTER: Facts['shown'] = { kind: 'shorter', at: 90 };

type Expected = Pick<Decision, 'kind' | 'at'> & { readonly needs?: string; readonly reason?: unknown };
type Row = readonly [
  row: number,
  what: string,
  facts: Partial<Facts> & Pick<Facts, 'shown' | 'mirror'>,
  decision: Expected,
];
const undetermined = (at: number, needs: string) => ({ kind: 'undetermined', at, needs }) as const;
const reason = (words: RegExp) => expect.stringMatching(words);
/** Cut to the committed bytes, or to the equal ones. */
const cut = (at: number) =>
  ({
    kind: 'mirror-damaged',
    at,
    reason: reason(/^its uncommitted bytes differ from the remote file: requested again from byte/),
  }) as const;
const mended = (at: number) => ({ kind: 'mirror-damaged', at, reason: reason(/^another process changed it/) }) as const;

const isConfirmed = true;
const areRawBytesRefused = true;

const ROWS: readonly Row[] = [
  [
    1,
    'does not show uncommitted bytes',
    { shown: SAME, mirror: UNCOMMITTED, unshownFrom: 85 },
    {
      kind: 'mirror-damaged',
      at: 85,
      reason: reason(/does not show its uncommitted bytes: requested again from byte 85 on/),
    },
  ],
  [
    1,
    'does not show bytes of one that was changed',
    { shown: SAME, mirror: MODIFIED, unshownFrom: 7 },
    { kind: 'mirror-damaged', at: 7, reason: reason(/does not show/) },
  ],
  [
    2,
    'does not show disputed bytes',
    { shown: SAME, mirror: LOST, unshownFrom: 7, areRawBytesRefused },
    { kind: 'mirror-damaged', at: 7, reason: reason(/does not show/) },
  ],
  [3, 'does not show disputed bytes', { shown: SAME, mirror: LOST, unshownFrom: 7 }, undetermined(7, 'raw-bytes')],
  [3, 'ends in bytes that it cannot show', { shown: OPEN, mirror: INTACT }, undetermined(98, 'raw-bytes')],
  [4, 'shows all of it, and ends there', { shown: SAME, mirror: INTACT }, { kind: 'unchanged', at: 100 }],
  [
    4,
    'ends in bytes that it cannot show',
    { shown: OPEN, mirror: INTACT, areRawBytesRefused },
    { kind: 'unchanged', at: 100 },
  ],
  [5, 'shows all of it, and goes on', { shown: SAME, mirror: INTACT, goesOn: true }, { kind: 'grown', at: 100 }],
  [
    5,
    'goes on after bytes not shown',
    { shown: OPEN, mirror: INTACT, goesOn: true, areRawBytesRefused },
    { kind: 'grown', at: 100 },
  ],
  [6, 'differs in uncommitted bytes', { shown: DIFFERENT, mirror: UNCOMMITTED }, cut(90)],
  [6, 'differs before others', { shown: { kind: 'different', at: 70 }, mirror: UNCOMMITTED }, cut(80)],
  [6, 'differs after bytes not shown', { shown: DIFFERENT, mirror: UNCOMMITTED, unshownFrom: 85 }, cut(85)],
  [6, 'raw bytes differ', { shown: DIFFERENT, mirror: UNCOMMITTED, by: 'raw bytes' }, cut(90)],
  [6, 'differs from one that was changed', { shown: DIFFERENT, mirror: MODIFIED }, mended(90)],
  [
    6,
    'differs from one that was changed, after bytes not shown',
    { shown: DIFFERENT, mirror: MODIFIED, unshownFrom: 7 },
    mended(7),
  ],
  [7, 'differs', { shown: DIFFERENT, mirror: INTACT }, undetermined(90, 'the-next-poll')],
  [7, 'differs, and the state was lost', { shown: DIFFERENT, mirror: LOST }, undetermined(90, 'the-next-poll')],
  [7, 'ends before', { shown: SHORTER, mirror: INTACT }, undetermined(90, 'the-next-poll')],
  [7, 'ends before uncommitted bytes', { shown: SHORTER, mirror: UNCOMMITTED }, undetermined(90, 'the-next-poll')],
  [7, 'ends before others', { shown: SHORTER, mirror: MODIFIED }, undetermined(90, 'the-next-poll')],
  [7, 'raw bytes differ', { shown: DIFFERENT, mirror: INTACT, by: 'raw bytes' }, undetermined(90, 'the-next-poll')],
  [8, 'ends before', { shown: SHORTER, mirror: UNCOMMITTED, isConfirmed }, cut(90)],
  [8, 'ends before the end of one that was changed', { shown: SHORTER, mirror: MODIFIED, isConfirmed }, mended(90)],
  [
    9,
    'differs, and not by ASCII alone',
    { shown: DIFFERENT, mirror: INTACT, isByAscii: false, isConfirmed },
    undetermined(90, 'raw-bytes'),
  ],
  [
    9,
    'ends after bytes that it does not show',
    { shown: SHORTER, mirror: LOST, unshownFrom: 7, isByAscii: false, isConfirmed },
    undetermined(7, 'raw-bytes'),
  ],
  [
    10,
    'differs',
    { shown: DIFFERENT, mirror: INTACT, isConfirmed },
    { kind: 'rewritten', at: 90, reason: reason(/^its byte 90 differs from the mirror$/) },
  ],
  [
    10,
    'differs after disputed bytes, and the state was lost',
    { shown: DIFFERENT, mirror: LOST, unshownFrom: 7, areRawBytesRefused, isConfirmed },
    { kind: 'rewritten', at: 7, reason: reason(/the mirror/) },
  ],
  [
    10,
    'raw bytes differ',
    { shown: DIFFERENT, mirror: INTACT, by: 'raw bytes', isConfirmed },
    { kind: 'rewritten', at: 90, reason: reason(/, as its raw bytes show$/) },
  ],
  [
    11,
    'ends before',
    { shown: SHORTER, mirror: INTACT, isConfirmed },
    { kind: 'truncated', at: 90, reason: reason(/^it has at most 90 bytes, the mirror has 100$/) },
  ],
  [
    11,
    'ends after disputed bytes, and the state was lost',
    { shown: SHORTER, mirror: LOST, unshownFrom: 7, areRawBytesRefused, isConfirmed },
    { kind: 'truncated', at: 7, reason: reason(/the mirror/) },
  ],
];

test.each(ROWS)('row %i: %s', (_, __, facts, expected) => {
  expect(decide({ by: 'text', goesOn: false, isConfirmed: false, isByAscii: true, ...facts })).toEqual(expected);
});

test('each row of the table has a case', () => {
  const source = fs.readFileSync(new URL('../../../src/agent/live/decide.ts', import.meta.url), 'utf8');
  const table = [...source.matchAll(/^ \* {3}(\d+) /gm)].map(([, row]) => Number(row));
  expect([...new Set(ROWS.map(([row]) => row))]).toEqual(table);
});
