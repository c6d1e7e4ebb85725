/** The ledger of the results: what it counts is what it holds, whatever was done to it in whichever order. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { JobId } from '../../src/job.ts';
import type { ResultRow, ResultState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { numRuns } from '../support/property-runs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOBS = ['501', '502'] as JobId[];
const STATES: ResultState[] = ['listed', 'synced', 'in-flux', 'linked', 'failed', 'refused', 'left-out'];

function openStore() {
  const directory = temporaryDirectory();
  const store = new Store({ directory, service: 'x', owner: true, now: () => 0 });
  for (const jobId of JOBS) {
    store.jobs.watch({ jobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' }, 0);
  }
  return store;
}

const rowOf = (jobId: JobId, name: string, state: ResultState, bytes: number | null): ResultRow => ({
  ...{ ...NEW_RESULT, jobId, name, state, bytes },
});

it('the table of results counts what it holds, after any changes', () => {
  const store = openStore();
  const job = fc.constantFrom(...JOBS);
  const name = fc.constantFrom('/a', '/b', '/c', '');
  const row = fc.tuple(job, name, fc.constantFrom(...STATES), fc.option(fc.nat(1_000)));
  const change = fc.oneof(
    fc.record({ save: fc.array(row, { maxLength: 4 }) }),
    fc.record({ forget: fc.array(fc.tuple(job, name), { maxLength: 4 }) }),
    fc.record({ withoutRow: fc.tuple(job, fc.nat(5), fc.nat(5)) }),
  );
  let withoutRow = new Map(JOBS.map((jobId) => [jobId, { refused: 0, 'left-out': 0 }]));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      for (const one of changes) {
        if ('save' in one) store.results.saveAll(one.save.map((fields) => rowOf(...fields)));
        else if ('forget' in one) store.results.forgetAll(one.forget.map(([jobId, at]) => ({ jobId, name: at })));
        else {
          const [jobId, refused, leftOut] = one.withoutRow;
          withoutRow = withoutRow.set(jobId, { refused, 'left-out': leftOut });
          store.results.setWithoutRow(jobId, { refused, 'left-out': leftOut });
        }
        const totals: Record<string, number> = {};
        for (const jobId of JOBS) {
          const rows = [...store.results.ofJob(jobId)];
          const { refused = 0, 'left-out': leftOut = 0 } = withoutRow.get(jobId) ?? {};
          const of = (...states: ResultState[]) => rows.filter(({ state }) => states.includes(state)).length;
          expect(store.results.counts(jobId)).toEqual({
            listed: rows.length + refused + leftOut,
            synced: of('synced', 'in-flux', 'linked'),
            linked: of('linked'),
            inFlux: of('in-flux'),
            queued: of('listed'),
            failed: of('failed', 'refused') + refused,
            refused: of('refused') + refused,
            leftOut: of('left-out') + leftOut,
            bytes: rows.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0),
          });
          for (const { state } of rows) totals[state] = (totals[state] ?? 0) + 1;
          if (refused > 0) totals['refused'] = (totals['refused'] ?? 0) + refused;
          if (leftOut > 0) totals['left-out'] = (totals['left-out'] ?? 0) + leftOut;
        }
        expect(store.totals.read().results).toEqual(totals);
      }
    }),
    numRuns(60),
  );
  store.close();
});

it('the table of results hands its rows out in the order of their names, however many there are, and takes changes meanwhile', () => {
  const store = openStore();
  const [jobId = '' as never] = JOBS;
  store.results.setWithoutRow(jobId, { refused: 0, 'left-out': 0 });
  expect(store.results.countsByJob()).toEqual(new Map());
  const names = ['', '\0', '\0\0', ...Array.from({ length: 1_498 }, (_, at) => `/${at}`), 'ü', '\u{1F600}'];
  store.results.saveAll(names.map((name) => rowOf(jobId, name, 'synced', 1)));
  const seen: string[] = [];
  for (const { name } of store.results.ofJob(jobId)) {
    seen.push(name);
    store.results.forgetAll([{ jobId, name }]);
  }
  expect(seen).toEqual([...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  expect(store.results.counts(jobId)).toMatchObject({ listed: 0, bytes: 0 });
  store.close();
});

it('the table of results is a tree of names, level by level, in pages of any size', () => {
  const store = openStore();
  const [job = JOBS[0]] = JOBS;
  const part = fc.constantFrom('a', 'b', 'ž', 'a b', '%', '_', '0', '.', '');
  const names = fc.uniqueArray(
    fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
    { maxLength: 25 },
  );
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 5 }), (found, max) => {
      store.results.forgetAll([...store.results.ofJob(job as JobId)]);
      store.results.saveAll(
        found.map((name, index) => rowOf(job as JobId, name, STATES[index % STATES.length] ?? 'synced', index)),
      );
      const walk = (under: string): string[] => {
        const level: { name: string; isDirectory: number; files: number }[] = [];
        for (let after = ''; ; ) {
          const page = store.results.level(job as JobId, { under, after, max });
          if (page.length === 0) break;
          expect(new Set(page.map(({ name }) => name)).size).toBeLessThanOrEqual(max);
          level.push(...page);
          after = page.at(-1)?.name ?? '';
        }
        const directories = new Map<string, number>();
        for (const { name, isDirectory, files } of level)
          if (isDirectory === 1) directories.set(name, (directories.get(name) ?? 0) + files);
        for (const [name, files] of directories)
          expect(files).toBe(found.filter((each) => each.startsWith(name)).length);
        return [
          ...level.flatMap(({ name, isDirectory }) => (isDirectory === 1 ? [] : [name])),
          ...[...directories.keys()].flatMap(walk),
        ];
      };
      // A name that is empty stands for nothing that could be shown.
      expect(walk('').sort()).toEqual(found.filter((name) => name !== '').sort());
      for (const name of found) expect(store.results.get(job as JobId, name)?.name).toBe(name);
      // A job that never had a result has no counts among those of all jobs.
      const ofAll = store.results.countsByJob().get(job as JobId);
      if (found.length > 0 || ofAll !== undefined) expect(ofAll).toEqual(store.results.counts(job as JobId));
      expect(ofAll?.listed ?? 0).toBe(found.length);
    }),
    // A name may be that of a directory.
    { ...numRuns(60), examples: [[['a/', 'a/b'], 1]] },
  );
  store.close();
});
