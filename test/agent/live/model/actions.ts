/** What can happen while files are followed, as data: generated, shrunk and printed by fast-check. */
import fc from 'fast-check';
import { piece } from './content.ts';

type ValueOf<Values> = Values extends fc.Arbitrary<infer Value> ? Value : never;

const among = <const Values extends readonly unknown[]>(...values: Values): fc.Arbitrary<Values[number]> =>
  fc.constantFrom(...values);

const file = fc.nat(3);
/** How much of what there is. */
const share = fc.oneof(among(0, 1), fc.double({ min: 0, max: 1, noNaN: true }));
const where = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const size = among('shorter', 'equal', 'longer', 'any');

/** A change of a remote file. */
const change = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: among('append'), file, piece, share }) },
  { weight: 1, arbitrary: fc.record({ do: among('truncate'), file, share }) },
  { weight: 2, arbitrary: fc.record({ do: among('rewrite'), file, piece, share, size }) },
  { weight: 1, arbitrary: fc.record({ do: among('delete'), file }) },
);
export type Change = ValueOf<typeof change>;

/**
 * How the service makes text of bytes: in blocks (over REST up to V6.3), perhaps on the older .NET runtime; with one
 * decoder to the end (from V6.4 on, docs/dev/rest.md 3.2); or otherwise.
 */
const utf8 = among('blocks', 'blocks-older', 'blocks-swallow', 'stream');
const decoding = fc.oneof({ weight: 4, arbitrary: utf8 }, { weight: 1, arbitrary: among('latin-1') });
export type Decoding = ValueOf<typeof decoding>;

/** A poll, one of a complete pass, or a complete pass. */
const work = among('poll', 'poll', 'poll', 'poll', 'complete', 'complete', 'pass');
const code = among('fault', 'timeout', 'session-lost', 'unavailable', 'malformed', 'request-too-long');
/** What a person does to a mirror. */
const edit = among('append', 'change', 'truncate', 'delete', 'replace');

const action = fc.oneof(
  { weight: 16, arbitrary: change },
  { weight: 16, arbitrary: fc.record({ do: among('work'), work }) },
  { weight: 3, arbitrary: fc.record({ do: among('wait'), ms: among(100, 3_000, 6_000, 15_000, 700_000) }) },
  // The file shows an old size for a few seconds.
  { weight: 2, arbitrary: fc.record({ do: among('stale'), file, share }) },
  { weight: 2, arbitrary: fc.record({ do: among('fault'), codes: fc.array(code, { minLength: 1, maxLength: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: among('poison'), file }) },
  // The file changes within the next poll, between two calls.
  { weight: 3, arbitrary: fc.record({ do: among('race'), calls: fc.nat(4), change }) },
  { weight: 1, arbitrary: fc.record({ do: among('full'), room: fc.oneof(fc.nat(20), fc.nat(3000)) }) },
  { weight: 2, arbitrary: fc.record({ do: among('edit'), file, edit, where, restart: fc.boolean() }) },
  // The service hands out raw bytes, or refuses to.
  { weight: 1, arbitrary: fc.record({ do: among('raw-access'), given: fc.boolean() }) },
  // A later loss may bring back the state of this moment.
  { weight: 1, arbitrary: fc.record({ do: among('copy-state') }) },
  { weight: 1, arbitrary: fc.record({ do: among('lose-state') }) },
  // From now on the service decodes in another way.
  { weight: 1, arbitrary: fc.record({ do: among('upgrade'), to: utf8 }) },
  // Faults, poison and a full disk are over.
  { weight: 2, arbitrary: fc.record({ do: among('calm') }) },
);
export type Action = ValueOf<typeof action>;

export const actions = fc.array(action, { minLength: 2, maxLength: 16 });

/** How the service is, and how the agent is set. */
export const setting = fc.record({
  rawAccess: among(true, true, true, false),
  decoding,
  /** What an earlier agent learned of the service: nothing, how it decodes, or how it did before it was upgraded. */
  learned: among('nothing', 'nothing', 'rightly', 'wrongly'),
  shortRead: among(null, null, null, 700),
  overlapBytes: among(256, 64, 24),
  /** Bytes of text that make a backlog a long one: never less than what src/remote/text/text-bytes.ts reads of it. */
  longBacklogBytes: among(undefined, 2_000, 1_100),
  /** Whether one live file is watched, and so requested by itself, or all are. */
  alone: fc.boolean(),
  /** Whether files grow by a few characters, each of which could be anything. */
  small: fc.boolean(),
  keepGenerations: among(5, 1, 0, 2),
});
export type Setting = ValueOf<typeof setting>;
