/** What can happen while files are followed, as data: generated, shrunk and printed by fast-check. */
import fc from 'fast-check';
import type { ErrorCode } from '../../../../src/errors.ts';
import { type Piece, piece } from './content.ts';

const FILES = 4;

/** A change of a remote file. `share` in [0, 1] says how much of what there is. */
export type Change =
  | { readonly do: 'append'; readonly file: number; readonly piece: Piece; readonly share: number }
  | { readonly do: 'truncate'; readonly file: number; readonly share: number }
  | {
      readonly do: 'rewrite';
      readonly file: number;
      readonly piece: Piece;
      readonly share: number;
      readonly size: 'shorter' | 'equal' | 'longer' | 'any';
    }
  | { readonly do: 'delete'; readonly file: number };

/** What a person does to a mirror. */
type Edit = 'append' | 'change' | 'truncate' | 'delete' | 'replace';

/**
 * How the service makes text of bytes: in blocks (over REST up to V6.3), perhaps on the older .NET runtime; with one
 * decoder to the end (from V6.4 on, docs/dev/rest.md 3.2); or otherwise.
 */
export type Decoding = 'blocks' | 'blocks-older' | 'blocks-swallow' | 'stream' | 'latin-1';

/** A poll, one of a complete pass, or a complete pass. */
export type Work = 'poll' | 'complete' | 'pass';

export type Action =
  | Change
  | { readonly do: 'work'; readonly work: Work }
  | { readonly do: 'wait'; readonly ms: number }
  /** The file shows an old size for a few seconds. */
  | { readonly do: 'stale'; readonly file: number; readonly share: number }
  | { readonly do: 'fault'; readonly codes: readonly ErrorCode[] }
  | { readonly do: 'poison'; readonly file: number }
  /** The file changes within the next poll, between two calls. */
  | { readonly do: 'race'; readonly calls: number; readonly change: Change }
  /** The service hands out raw bytes, or refuses to. */
  | { readonly do: 'raw-access'; readonly given: boolean }
  | { readonly do: 'full'; readonly room: number }
  | {
      readonly do: 'edit';
      readonly file: number;
      readonly edit: Edit;
      readonly where: number;
      readonly restart: boolean;
    }
  | { readonly do: 'lose-state' }
  /** From now on the service decodes in another way. */
  | { readonly do: 'upgrade'; readonly to: Decoding }
  /** Faults, poison and a full disk are over. */
  | { readonly do: 'calm' };

const file = fc.nat(FILES - 1);
const share = fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true }));
const where = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

const work: fc.Arbitrary<Work> = fc.constantFrom('poll', 'poll', 'poll', 'poll', 'complete', 'complete', 'pass');

const append = fc.record({ do: fc.constant('append' as const), file, piece, share });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: append },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('truncate' as const), file, share }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('rewrite' as const),
      file,
      piece,
      share,
      size: fc.constantFrom('shorter', 'equal', 'longer', 'any'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), file }) },
);

const CODES: readonly ErrorCode[] = [
  'fault',
  'timeout',
  'session-lost',
  'unavailable',
  'malformed',
  'request-too-long',
];

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 16, arbitrary: change },
  { weight: 16, arbitrary: fc.record({ do: fc.constant('work' as const), work }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(100, 3_000, 6_000, 15_000, 700_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stale' as const), file, share }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      codes: fc.array(fc.constantFrom(...CODES), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('poison' as const), file }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('race' as const), calls: fc.nat(4), change }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('full' as const), room: fc.oneof(fc.nat(20), fc.nat(3000)) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('edit' as const),
      file,
      edit: fc.constantFrom('append', 'change', 'truncate', 'delete', 'replace'),
      where,
      restart: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('raw-access' as const), given: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: 'lose-state' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('upgrade' as const),
      to: fc.constantFrom<Decoding[]>('blocks', 'blocks-older', 'blocks-swallow', 'stream'),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'calm' as const }) },
);

export const actions: fc.Arbitrary<Action[]> = fc.array(action, { minLength: 2, maxLength: 16 });

/** How the service is, and how the agent is set. */
export interface Setting {
  readonly rawAccess: boolean;
  readonly decoding: Decoding;
  /** What an earlier agent learned of the service: nothing, how it decodes, or how it did before it was upgraded. */
  readonly learned: 'nothing' | 'rightly' | 'wrongly';
  readonly shortRead: number | null;
  readonly overlapBytes: number;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes: number | undefined;
  /** Whether one live file is watched, and so asked for by itself, or all are. */
  readonly alone: boolean;
  /** Whether files grow by a few characters, each of which could be anything. */
  readonly small: boolean;
  readonly keepGenerations: number;
}

export const setting: fc.Arbitrary<Setting> = fc.record({
  rawAccess: fc.constantFrom(true, true, true, false),
  decoding: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<Decoding[]>('blocks', 'blocks-older', 'blocks-swallow', 'stream') },
    { weight: 1, arbitrary: fc.constant<Decoding>('latin-1') },
  ),
  learned: fc.constantFrom('nothing', 'nothing', 'rightly', 'wrongly'),
  shortRead: fc.constantFrom(null, null, null, 700),
  overlapBytes: fc.constantFrom(256, 64, 24),
  // Never less than what is looked at of a text (src/remote/text/text-bytes.ts).
  longBacklogBytes: fc.constantFrom(undefined, 2_000, 1_100),
  alone: fc.boolean(),
  small: fc.boolean(),
  keepGenerations: fc.constantFrom(5, 1, 0, 2),
});
