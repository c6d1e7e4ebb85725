/** The table of src/agent/live/decide.ts, row by row. */
import { expect, test } from 'vitest';
import { type Decision, decide, type Facts } from '../../../src/agent/live/decide.ts';

const INTACT = { length: 100, committed: 100, integrity: 'intact', hasFingerprint: true } as const;
const UNCOMMITTED = { ...INTACT, committed: 80 } as const;
const MODIFIED = { ...INTACT, integrity: 'modified' } as const;
const LOST = { ...INTACT, committed: 0, integrity: 'unknown' } as const;

const SAME: Facts['shown'] = { kind: 'same', at: 100, open: false };
const OPEN: Facts['shown'] = { kind: 'same', at: 98, open: true };
const DIFFERENT: Facts['shown'] = { kind: 'different', at: 90 };
const SHORTER: Facts['shown'] = { kind: 'shorter', at: 90 };

type Row = readonly [
  what: string,
  facts: Partial<Facts> & Pick<Facts, 'shown' | 'mirror'>,
  decision: Pick<Decision, 'kind' | 'at'> & { readonly needs?: string; readonly reason?: unknown },
];
const undetermined = (at: number, needs: string) => ({ kind: 'undetermined', at, needs }) as const;
const damaged = (at: number) => ({ kind: 'mirror-damaged', at, reason: expect.any(String) }) as const;
const reason = (words: RegExp) => expect.stringMatching(words);

const ROWS: readonly Row[] = [
  ['shows all of it, and ends there', { shown: SAME, mirror: INTACT }, { kind: 'unchanged', at: 100 }],
  ['shows all of it, and goes on', { shown: SAME, mirror: INTACT, goesOn: true }, { kind: 'grown', at: 100 }],
  ['does not show disputed bytes', { shown: SAME, mirror: LOST, unshownFrom: 7 }, undetermined(7, 'raw-bytes')],
  ['does not show uncommitted bytes', { shown: SAME, mirror: UNCOMMITTED, unshownFrom: 85 }, damaged(85)],
  [
    'does not show committed bytes of a mirror that was changed, and others follow',
    { shown: SAME, mirror: { ...UNCOMMITTED, integrity: 'modified' }, unshownFrom: 7 },
    undetermined(7, 'raw-bytes'),
  ],
  ['ends in bytes that it cannot show', { shown: OPEN, mirror: INTACT }, undetermined(98, 'raw-bytes')],
  [
    'differs behind inexact bytes',
    { shown: DIFFERENT, mirror: INTACT, isBehindInexact: true, isConfirmed: true },
    undetermined(90, 'raw-bytes'),
  ],
  [
    'differs behind inexact bytes, and raw bytes cannot be had',
    { shown: DIFFERENT, mirror: INTACT, isBehindInexact: true, hasRawBytes: false, isConfirmed: true },
    undetermined(90, 'the-next-poll'),
  ],
  [
    'differs behind disputed bytes that it does not show',
    { shown: DIFFERENT, mirror: LOST, unshownFrom: 7, isConfirmed: true },
    undetermined(7, 'raw-bytes'),
  ],
  [
    'does not show disputed bytes, and raw bytes cannot be had',
    { shown: SAME, mirror: LOST, unshownFrom: 7, hasRawBytes: false },
    { kind: 'unchanged', at: 100 },
  ],
  [
    'ends in bytes that it cannot show, and raw bytes cannot be had',
    { shown: OPEN, mirror: INTACT, hasRawBytes: false },
    { kind: 'unchanged', at: 100 },
  ],
  [
    'ends in bytes that it cannot show and goes on, and raw bytes cannot be had',
    { shown: OPEN, mirror: INTACT, hasRawBytes: false, goesOn: true },
    { kind: 'grown', at: 100 },
  ],
  [
    'differs behind disputed bytes that it does not show, and raw bytes cannot be had',
    { shown: DIFFERENT, mirror: LOST, unshownFrom: 7, hasRawBytes: false, isConfirmed: true },
    { kind: 'rewritten', at: 7, reason: reason(/the state of the mirror was lost/) },
  ],
  [
    'ends behind disputed bytes that it does not show, and raw bytes cannot be had',
    { shown: SHORTER, mirror: LOST, unshownFrom: 7, hasRawBytes: false, isConfirmed: true },
    { kind: 'truncated', at: 7, reason: reason(/the state of the mirror was lost/) },
  ],
  ['differs in uncommitted bytes', { shown: DIFFERENT, mirror: UNCOMMITTED }, damaged(90)],
  [
    'differs before uncommitted bytes, behind others that it does not show',
    { shown: DIFFERENT, mirror: UNCOMMITTED, unshownFrom: 85 },
    damaged(85),
  ],
  [
    'differs in committed bytes, and others follow',
    { shown: { kind: 'different', at: 70 }, mirror: UNCOMMITTED },
    damaged(80),
  ],
  [
    'ends within uncommitted bytes of a mirror that was changed',
    { shown: SHORTER, mirror: { ...UNCOMMITTED, integrity: 'modified' } },
    damaged(90),
  ],
  [
    'differs, and the mirror lacks its committed bytes',
    { shown: DIFFERENT, mirror: { ...INTACT, hasFingerprint: false } },
    undetermined(0, 'all-of-the-mirror'),
  ],
  [
    'ends before, and the mirror lacks its committed bytes',
    { shown: SHORTER, mirror: { ...INTACT, hasFingerprint: false } },
    undetermined(0, 'all-of-the-mirror'),
  ],
  ['differs from a mirror that was changed', { shown: DIFFERENT, mirror: MODIFIED }, undetermined(90, 'its-end')],
  [
    'differs from a mirror that was changed, and shows its end',
    { shown: DIFFERENT, mirror: MODIFIED, showsEnd: true },
    damaged(90),
  ],
  [
    'differs from a mirror that was changed at its end',
    { shown: DIFFERENT, mirror: { ...MODIFIED, hasFingerprint: false } },
    damaged(90),
  ],
  [
    'differs from a mirror that was changed, and shows another end',
    { shown: DIFFERENT, mirror: MODIFIED, showsEnd: false },
    undetermined(90, 'confirmation'),
  ],
  ['differs', { shown: DIFFERENT, mirror: INTACT }, undetermined(90, 'confirmation')],
  ['differs, seen once', { shown: DIFFERENT, mirror: INTACT, isConfirmed: false }, undetermined(90, 'the-next-poll')],
  [
    'ends before, seen for less than 5 s',
    { shown: SHORTER, mirror: INTACT, isConfirmed: false },
    undetermined(90, 'the-next-poll'),
  ],
  ['ends before, seen for 5 s, uncommitted', { shown: SHORTER, mirror: UNCOMMITTED, isConfirmed: true }, damaged(90)],
  [
    'differs, seen twice',
    { shown: DIFFERENT, mirror: INTACT, isConfirmed: true },
    { kind: 'rewritten', at: 90, reason: reason(/^its byte 90 differs from the mirror$/) },
  ],
  [
    'differs, seen twice, and the state was lost',
    { shown: DIFFERENT, mirror: LOST, isConfirmed: true },
    { kind: 'rewritten', at: 90, reason: reason(/the state of the mirror was lost/) },
  ],
  [
    'ends before, seen for 5 s',
    { shown: SHORTER, mirror: INTACT, isConfirmed: true },
    { kind: 'truncated', at: 90, reason: reason(/^it has at most 90 bytes, the mirror has 100$/) },
  ],
  [
    'raw bytes differ, seen once',
    { shown: DIFFERENT, mirror: MODIFIED, by: 'raw bytes' },
    undetermined(90, 'confirmation'),
  ],
  [
    'raw bytes differ from a mirror that was changed',
    { shown: DIFFERENT, mirror: MODIFIED, by: 'raw bytes', isConfirmed: true },
    damaged(90),
  ],
  [
    'raw bytes differ',
    { shown: DIFFERENT, mirror: INTACT, by: 'raw bytes', isConfirmed: true },
    { kind: 'rewritten', at: 90, reason: reason(/as its raw bytes show/) },
  ],
];

test.each(ROWS)('%s', (_, facts, expected) => {
  expect(decide({ by: 'text', goesOn: false, ...facts })).toEqual(expected);
});
