/** The table of the results is read in pages, and as a tree. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { JobId } from '../../src/job.ts';
import type { ResultRow, ResultState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { numRuns } from '../support/property-runs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const STATES: ResultState[] = ['listed', 'synced', 'in-flux', 'linked', 'failed', 'refused', 'left-out'];

function openStore() {
  const directory = temporaryDirectory();
  const store = new Store({ directory, service: 'x', owner: true, now: () => 0 });
  onTestFinished(() => store.close());
  store.jobs.watch({ jobId: JOB, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' }, 0);
  return store;
}

const rowOf = (name: string, state: ResultState, bytes: number): ResultRow => ({
  ...{ ...NEW_RESULT, jobId: JOB, name, state, bytes },
});

it('the table of results hands its rows out in the order of their names, however many there are, and takes changes meanwhile', () => {
  const store = openStore();
  const names = ['', '\0', '\0\0', ...Array.from({ length: 1_498 }, (_, at) => `/${at}`), 'ü', '\u{1F600}'];
  store.results.saveAll(names.map((name) => rowOf(name, 'synced', 1)));
  const seen: string[] = [];
  for (const { name } of store.results.ofJob(JOB)) {
    seen.push(name);
    store.results.forgetAll([{ jobId: JOB, name }]);
  }
  expect(seen).toEqual([...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  expect(store.results.counts(JOB)).toMatchObject({ listed: 0, bytes: 0 });
});

it('the table of results is a tree of names, level by level, in pages of any size', () => {
  const store = openStore();
  const part = fc.constantFrom('a', 'b', 'ž', 'a b', '%', '_', '0', '.', '');
  const names = fc.uniqueArray(
    fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
    { maxLength: 25 },
  );
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 5 }), (found, max) => {
      store.results.forgetAll([...store.results.ofJob(JOB)]);
      store.results.saveAll(found.map((name, index) => rowOf(name, STATES[index % STATES.length] ?? 'synced', index)));
      const walk = (under: string): string[] => {
        const level: { name: string; isDirectory: number; files: number }[] = [];
        for (let after = ''; ; ) {
          const page = store.results.level(JOB, { under, after, max });
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
      for (const name of found) expect(store.results.get(JOB, name)?.name).toBe(name);
    }),
    // A name may be that of a directory; a directory is one entry, however many names are in it.
    {
      ...numRuns(60),
      examples: [
        [['a/', 'a/b'], 1],
        [['a/b', 'a/c', 'a0', 'ab/c/d', '/a'], 2],
      ],
    },
  );
});
