import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PROPERTY_TIMES } from './test/support/property-runs.ts';
import { RunReporter } from './test/support/run-reporter.ts';

/**
 * Files with a process of their own. These measure it: its memory, its pauses, what an import does to it. A file that
 * uses fake timers is one as well: a module that starts its timer meanwhile (undici has one for all connections) would
 * wait for it for ever in the files after it.
 */
const ALONE = [
  'test/remote/soap/long/streaming.test.ts',
  'test/remote/long/hostile-documents.test.ts',
  'test/agent/results/listing/long/hostile-listings.test.ts',
  // The simulated machine of these is in the place of the real one.
  'test/virtual/**/*.test.ts',
  // The page stays in this process.
  'test/view/page/live.test.ts',
  'test/view/page/printed-page.test.ts',
  ...testFilesWith('vi.useFakeTimers('),
  ...testFilesWith('vi.mock('),
];

function testFilesWith(text: string): string[] {
  const files = fs.readdirSync(path.join(import.meta.dirname, 'test'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/${file.replaceAll(path.sep, '/')}`)
    .filter((file) => fs.readFileSync(path.join(import.meta.dirname, file), 'utf8').includes(text));
}

/** Other browsers, large sizes, and sweeps that seldom find what others do not: only in `npm run test:nightly`. */
const NIGHTLY =
  process.env['JOBTAIL_NIGHTLY'] === '1'
    ? []
    : ['test/view/page/browser/long/{accessible-all,big-log,firefox,long-lines}.test.ts'];

/** Minutes of processes that wait for one another, and sweeps: only where they are asked for (`npm run test:long`). */
const LONG = process.env['JOBTAIL_LONG'] === '1' ? NIGHTLY : ['test/**/long/**'];
const IS_LONG = process.env['JOBTAIL_LONG'] === '1';

/** Far beyond what anything takes, also where ten others want the processor: only what hangs is to meet it. */
const TEST_TIMEOUT_MS = 300_000;

/** One file at a time, after all others: each keeps a machine busy with agents or SSH, whose answers have limits of seconds. */
const CROWDED = ['test/e2e/fleet/long/**/*.test.ts', 'test/direct/long/**/*.test.ts'];

/** Temporary files, of PostgreSQL too: in memory, for most tests flush thousands of times; those below `long/` on the disk. */
const TEMPORARY = !IS_LONG && isRoomInMemory() ? { TMPDIR: '/dev/shm' } : {};

/** Containers have 64 MiB there, without the right to execute. */
function isRoomInMemory(): boolean {
  if (!fs.existsSync('/dev/shm') || /^\S+ \/dev\/shm .*\bnoexec\b/m.test(fs.readFileSync('/proc/mounts', 'utf8')))
    return false;
  const { bavail, bsize } = fs.statfsSync('/dev/shm');
  return bavail * bsize > 4 * 1024 ** 3;
}

/** Minutes of processes: any change in a folder that their support imports would run all of them in `npm run test:near`. */
const FAR = process.env['JOBTAIL_NEAR'] === '1' ? ['test/e2e/**', 'test/view/page/browser/**'] : [];

/**
 * Random order by the seed that the end of a run prints. Files with a process of their own go first: between the others,
 * each would end a process that these share. Files that wait for programs, or simulate agents, go before the rest:
 * begun last, one of them would be left to a single core.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { seed } = this.ctx.config.sequence;
    const placeOf = (file: string) => createHash('md5').update(`${seed} ${path.relative(import.meta.dirname, file)}`);
    const groupOf = ({ moduleId, project }: TestSpecification) =>
      (project.name === 'alone' ? 0 : 2) + (isLong(moduleId) ? 0 : 1);
    const keys = new Map(
      files.map((file) => [file.moduleId, `${groupOf(file)} ${placeOf(file.moduleId).digest('hex')}`]),
    );
    const keyOf = ({ moduleId }: TestSpecification) => keys.get(moduleId) ?? '';
    return [...files].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }
}

const isLong = (file: string) =>
  /e2e-until|child_process|runFor|expectCases|expectTransfers|startAgent/.test(fs.readFileSync(file, 'utf8'));

/** Sources as `npm run test:mutants` changed them. */
const planting = {
  ...{ name: 'mutant', enforce: 'pre' },
  load: (id: string) => (globalThis as { jobtailSources?: (id: string) => string | undefined }).jobtailSources?.(id),
} as const;

export default defineConfig({
  plugins: [planting],
  test: {
    // Most tests wait for processes and files, not for the processor: one more than there are keeps all of them busy.
    // Long ones are of many processes each.
    maxWorkers: IS_LONG ? 2 : os.availableParallelism() + 1,
    testTimeout: TEST_TIMEOUT_MS * Math.max(1, PROPERTY_TIMES),
    hookTimeout: TEST_TIMEOUT_MS,
    // Lines for people are compared as text: without colours, and not wrapped to the width of a terminal.
    env: { NO_COLOR: '1', COLUMNS: '', ...TEMPORARY },
    setupFiles: ['test/support/property-runs.ts'],
    reporters: [new RunReporter()],
    // Expected text that is missing fails, and is not written: only with `--update=true`.
    update: 'none',
    sequence: { sequencer: LongFirst, seed: Date.now() % 2 ** 31 },
    projects: [
      // A process of its own for each file would load the same modules a hundred times.
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: [...ALONE, ...CROWDED, ...LONG, ...FAR],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, exclude: LONG } },
      {
        extends: true,
        test: { name: 'crowded', include: CROWDED, exclude: LONG, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
