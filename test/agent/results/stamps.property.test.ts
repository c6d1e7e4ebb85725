/**
 * A file that kept its date is not fetched: whatever is done to it, and wherever the agent is killed, that never leaves
 * another content here than the service has under the date. A version of the file has one content and one date; the file
 * may go back to an older one (`cp -p`, `tar -x`), and be written anew while it is fetched; but not both, to the date that
 * the download began with.
 */
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { numRuns } from '../../support/property-runs.ts';
import { memoryDirectory } from '../../support/temp-directory.ts';
import { ResultsPlace } from './place.ts';

const HOUR_MS = 60 * 60_000;
const NAME = '/11/a';
const PIECES = 4;

class World {
  readonly place = new ResultsPlace({}, memoryDirectory());
  readonly #versions: number[] = [];
  #steps = Number.POSITIVE_INFINITY;
  #writtenAt = -1;
  #stamp = '';
  /** Dates of versions that a download had in part: the file does not get them back. */
  readonly #torn = new Set<string>();

  constructor() {
    const { remote, store } = this.place;
    remote.pieceBytes = 8;
    remote.onPiece = () => {
      this.#step();
      this.#writtenAt -= 1;
      if (this.#writtenAt !== 0) return;
      this.#torn.add(this.#stamp);
      this.write();
    };
    const transaction = store.transaction.bind(store);
    vi.spyOn(store, 'transaction').mockImplementation((work) => {
      this.#step();
      const done = transaction(work);
      this.#step();
      return done;
    });
    this.write();
  }

  /** A version that never was. */
  write(): void {
    this.#versions.push(this.#versions.length);
    this.back({ count: 0 });
  }

  /** The version of so many before the last one. */
  back({ count }: { readonly count: number }): void {
    const wanted = this.#versions[Math.max(0, this.#versions.length - 1 - count)] ?? 0;
    const version = this.#torn.has(stampOf(wanted)) ? (this.#versions.at(-1) ?? 0) : wanted;
    const { files, stamps } = this.place.remote;
    const content = Buffer.from(String(version).padStart(8, 'v').repeat(PIECES));
    const open = files.get(NAME);
    // In place: a fetch that is under way goes on with it.
    if (Buffer.isBuffer(open)) content.copy(open);
    else files.set(NAME, content);
    this.#stamp = stampOf(version);
    stamps.set(NAME, this.#stamp);
  }

  /** A sync an hour later; the file is written anew after so many pieces of it. */
  async sync({ isFinal = false, writtenAt = -1, withStamps = true } = {}): Promise<void> {
    const { place } = this;
    place.now += HOUR_MS;
    this.#writtenAt = writtenAt;
    if (!withStamps) place.remote.stamps.clear();
    await place.sync(isFinal);
    place.remote.stamps.set(NAME, this.#stamp);
  }

  /** A sync that a kill ends after so many steps, if it has as many; then a new process. */
  async killed({ isFinal, steps }: { readonly isFinal: boolean; readonly steps: number }): Promise<void> {
    this.#steps = steps;
    await this.sync({ isFinal }).catch(() => {});
    this.#steps = Number.POSITIVE_INFINITY;
    this.restarted();
  }

  restarted(): void {
    this.place.restarted();
  }

  /** Not listed in one sync. */
  async hidden(): Promise<void> {
    const { remote } = this.place;
    const content = remote.files.get(NAME) ?? '';
    remote.files.delete(NAME);
    await this.sync();
    remote.files.set(NAME, content as Buffer);
  }

  /** While nothing changes, a sync brings what is there. */
  async check(): Promise<void> {
    await this.sync();
    expect(this.place.read('11', 'a')).toBe(String(this.place.remote.files.get(NAME)));
  }

  #step(): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new JobtailError('store', 'killed');
  }
}

const stampOf = (version: number) => `2024-05-01T12:00:${String(version).padStart(2, '0')}`;

const action = fc.oneof(
  fc.constant({ kind: 'write' } as const),
  fc.record({ kind: fc.constant('back' as const), count: fc.nat(3) }),
  fc.record({
    kind: fc.constant('sync' as const),
    isFinal: fc.boolean(),
    writtenAt: fc.integer({ min: -1, max: PIECES }),
    withStamps: fc.integer({ min: 0, max: 4 }).map((of) => of > 0),
  }),
  fc.record({ kind: fc.constant('killed' as const), isFinal: fc.boolean(), steps: fc.nat(14) }),
  fc.constant({ kind: 'restarted' } as const),
  fc.constant({ kind: 'hidden' } as const),
  fc.constant({ kind: 'check' } as const),
  fc.constant({ kind: 'check' } as const),
);

type Step = typeof action extends fc.Arbitrary<infer Value> ? Value : never;

const CHECK = { kind: 'check' } as const;
/** A kill behind the rename, wherever, and the older version again: it is fetched. */
const KILLS = Array.from({ length: 16 }, (_, steps): [Step[]] => [
  [
    CHECK,
    CHECK,
    CHECK,
    { kind: 'write' },
    { kind: 'killed', isFinal: false, steps },
    { kind: 'back', count: 1 },
    CHECK,
  ],
]);

it('the content of a result is never another one than what the service has under the date', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 14 }), async (actions) => {
      const world = new World();
      for (const one of actions) await (world[one.kind] as (of: typeof one) => unknown).call(world, one);
      await world.check();
      // It comes to rest: nothing is fetched any more, in no process.
      for (let sync = 0; sync < 3; sync++) await world.check();
      const fetched = world.place.remote.downloads.length;
      world.place.restarted();
      await world.check();
      expect(world.place.remote.downloads).toHaveLength(fetched);
    }),
    { numRuns: numRuns(150).numRuns + KILLS.length, examples: KILLS },
  );
});
