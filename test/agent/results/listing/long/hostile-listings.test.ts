/** Listings and ledgers that are as large as a job or a service likes: in slices, in bounded memory, and said in a line. */
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Patterns } from '../../../../../src/agent/patterns.ts';
import { Ledger, Progress, Stamps } from '../../../../../src/agent/results/ledger.ts';
import { judgeOf } from '../../../../../src/agent/results/listing.ts';
import { LiveLinks } from '../../../../../src/agent/results/place/live-links.ts';
import { distinct, type Plan, planSync } from '../../../../../src/agent/results/plan.ts';
import { namesThatMayBe } from '../../../../../src/live-paths.ts';
import type { ResultRow } from '../../../../../src/store/rows.ts';
import { systemClock } from '../../../../../src/system/clock.ts';
import { fileCalls } from '../../../../../src/system/files.ts';
import { slowness, watchTurns } from '../../../../support/cpu-cost.ts';
import { NEW_RESULT } from '../../../../support/live-place.ts';
import { memoryDirectory } from '../../../../support/temp-directory.ts';
import { JOB, OPTIONS, ResultsPlace } from '../../place.ts';

const MB = 1e6;
/** Of the work; a collection of garbage comes on top. */
const MAX_MS = 100;

const placeInMemory = () => new ResultsPlace({}, memoryDirectory());
const synced = { state: 'synced', bytes: 1, sha256: 'a'.repeat(64), fetchedAt: 1 } as const;

/** Rows as earlier syncs left them. */
function fill(place: ResultsPlace, names: readonly string[], row: Partial<ResultRow>): void {
  const listed = { ...NEW_RESULT, state: 'listed', bytes: null, fetchedAt: null, intervalMs: 60_000 } as const;
  const dueAt = place.now + 60_000;
  place.store.results.saveAll(names.map((name) => ({ ...listed, dueAt, name, ...row })));
}

/** What one sync would do; nothing is fetched. */
async function planOf(place: ResultsPlace, names: readonly string[], patterns: Patterns = OPTIONS): Promise<Plan> {
  const { store, mirror } = place;
  const clock = { ...systemClock, now: () => place.now };
  const stamps = new Stamps(undefined, clock);
  const { signal } = new AbortController();
  const { capabilities } = store;
  return planSync({
    ...{ directory: place.path(), isFinal: false, onlyInFlux: false, maxFileBytes: null, signal, stamps },
    stands: async () => true,
    isLinkGone: async () => false,
    left: await distinct(names),
    judge: judgeOf(patterns, false),
    ledger: new Ledger({
      ...{ store, jobId: JOB, clock, onNetwork: false, intervalMs: 60_000, stamps, signal },
      progress: new Progress({ store, jobId: JOB, clock, fallback: null }),
    }),
    links: new LiveLinks({
      ...{ mirrorDirectory: mirror, calls: fileCalls(false), liveFiles: [], linked: [], capabilities },
    }),
  });
}

/** Does some work in slices, again if it blocks: only what blocks each time is a defect. How much the process grew. */
async function inSlices<T>(work: () => Promise<T>): Promise<{ readonly done: T; readonly grownBytes: number }> {
  for (let tries = 1; ; tries += 1) {
    const before = process.memoryUsage.rss();
    let most = before;
    const looking = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 5);
    const turns = watchTurns();
    const done = await work();
    const longestMs = turns.longestMs();
    clearInterval(looking);
    if (longestMs < MAX_MS) return { done, grownBytes: most - before };
    if (tries === 5) expect(longestMs, 'one turn of the event loop').toBeLessThan(MAX_MS * Math.max(1, slowness()));
  }
}

const DEEP = Array.from({ length: 7_995 }, (_, index) => `/d${index}/${'dir/'.repeat(96)}f`);
const MANY = Array.from({ length: 300_000 }, (_, index) => `/d${index % 500}/${index}`);

it.each([
  // With the first five, exactly so many would be one too many.
  ['8,000 names of 98 parts', ['/1', '/2', '/3', '/4', '/5', ...DEEP], 5_106, '500000 files and directories'],
  ['300,000 names', MANY, 200_000, '200000 results'],
])('%s: as many as are allowed are results, the others are refused in one line', async (_, names, allowed, limit) => {
  const place = placeInMemory();
  const { done, grownBytes } = await inSlices(() => planOf(place, names));
  const refused = names.length - allowed;
  expect([done.due.length, done.refusals.count, done.refusals.fresh.length]).toEqual([allowed, refused, 100]);
  expect(grownBytes).toBeLessThan(250 * MB);
  expect(done.refusals.fresh[0]?.reason).toMatch(new RegExp(`more than ${limit}$`));
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: names.length, queued: allowed, refused });
  expect(place.store.results.notSynced(JOB, 1_000)).toHaveLength(100);
  expect(place.store.totals.read().results).toEqual({ listed: allowed, refused });
  // The same ones the next time, and nobody is reported again.
  const again = await planOf(place, names);
  expect([again.due.length, again.refusals]).toEqual([allowed, { count: refused, fresh: [] }]);
});

it.each<[string, Patterns]>([
  ['in many directories', { include: ['**/a/**/b', '*.dat', '*.txt'], exclude: ['**/a/**/*b*/**'] }],
  ['of names', { include: ['*a*a*a*b', '*.dat'], exclude: ['*[a-z]?[a-z]*[a-z]?x'] }],
])('patterns %s are as slow as they can be', async (_, patterns) => {
  const place = placeInMemory();
  const names = Array.from({ length: 1_000 }, (_, index) => `${'a/'.repeat(index % 98)}${'a'.repeat(200)}${index}`);
  const { done, grownBytes } = await inSlices(() => planOf(place, names, patterns));
  expect(done.due).toEqual([]);
  expect(grownBytes).toBeLessThan(150 * MB);
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 1_000, leftOut: 1_000, failed: 0 });
});

it('100,000 results of which none is due cost one reading of their rows, and no writing', async () => {
  const place = placeInMemory();
  const names = Array.from({ length: 100_000 }, (_, index) => `/11/out/d${index % 500}/result-${index}.dat`);
  fill(place, names, synced);
  place.remote.listedToo = names;
  const pages = vi.spyOn(place.store.results, 'ofJob');
  const saves = vi.spyOn(place.store.results, 'saveAll');
  onTestFinished(() => void vi.restoreAllMocks());
  const startedAt = process.cpuUsage();
  const { done, grownBytes } = await inSlices(() => place.sync());
  const { user, system } = process.cpuUsage(startedAt);
  expect(done).toMatchObject({ listed: 100_000, fetched: 0, refused: 0 });
  expect(place.remote.downloads).toEqual([]);
  expect(pages.mock.calls.length).toBeLessThanOrEqual(5);
  expect(saves).not.toHaveBeenCalled();
  expect(grownBytes).toBeLessThan(150 * MB);
  // Half a second of an idle processor, a look; a square of 100,000 would be minutes.
  expect((user + system) / 1e6 / pages.mock.calls.length).toBeLessThan(5 * Math.max(1, slowness()));
});

it('100,000 rows of names that are listed no more are forgotten', async () => {
  const place = placeInMemory();
  const names = Array.from({ length: 100_000 }, (_, index) => `/11/../${index}`);
  fill(place, names, { state: 'refused', reason: 'it has the part ..' });
  expect(place.store.results.counts(JOB)).toMatchObject({ refused: 100_000 });
  place.remote.listedToo = ['/11/kept'];
  fill(place, ['/11/kept'], synced);
  const stop = new AbortController();
  const forgets = vi.spyOn(place.store.results, 'forgetAll').mockImplementationOnce(() => stop.abort());
  onTestFinished(() => void vi.restoreAllMocks());
  // While the rows are read, so that a stop waits for no others.
  await expect(place.sync(false, stop.signal)).rejects.toThrow(/abort/i);
  expect(forgets).toHaveBeenCalledTimes(1);
  await inSlices(() => place.sync());
  expect([...place.store.results.ofJob(JOB)].map(({ name }) => name)).toEqual(['/11/kept']);
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 1, synced: 1, failed: 0, refused: 0, bytes: 1 });
  expect(place.reported).toEqual([]);
});

it.each([
  ['slashes', '/'.repeat(20 * 2 ** 20)],
  ['directories', 'a/'.repeat(10 * 2 ** 20)],
  ['letters', `/${'\u001b'.repeat(20 * 2 ** 20)}`],
])('a name of 20 MiB of %s is refused by its length alone', async (_, name) => {
  const place = placeInMemory();
  place.remote.listedToo = [name];
  const { done } = await inSlices(() => place.sync());
  expect(done).toMatchObject({ listed: 1, refused: 1 });
  expect(place.reported).toHaveLength(1);
  expect(place.reported[0]?.length).toBeLessThan(3_000);
  expect([...place.store.results.ofJob(JOB)]).toMatchObject([{ state: 'refused', reason: 'it is too long' }]);
  await place.sync(true);
  expect(place.reported).toHaveLength(1);
  expect(await namesThatMayBe([name, '/x/a'], '/a')).toEqual(['/x/a']);
});
