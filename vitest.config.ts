import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that measure the memory or the pauses of their own process; no other file ran in it before. */
const MEASURING = [
  'test/soap/streaming.test.ts',
  'test/soap/broken-answers.test.ts',
  'test/sandbox/streaming.test.ts',
  'test/agent/results/hostile-listings.test.ts',
];

/**
 * Files that take longest, the longest first: begun last, one of them would be left to a single core. vitest orders by
 * the times of an earlier run, but a fresh clone has none.
 */
const LONGEST = [
  'test/agent/model.test.ts',
  // Waits most of its time, while the one before needs the processor.
  'test/e2e/service-systemd.test.ts',
  'test/e2e/results-large.test.ts',
  'test/e2e/kill.test.ts',
  'test/e2e/results-direct.test.ts',
  'test/direct/ssh.test.ts',
  'test/e2e/crash-state.test.ts',
  'test/direct/contract.test.ts',
  'test/e2e/service-tail.test.ts',
  'test/e2e/commands.test.ts',
  'test/soap/scanner.property.test.ts',
  'test/e2e/service-run.test.ts',
  'test/e2e/disk-edit.test.ts',
  'test/e2e/secrets.test.ts',
  'test/cli/demo.test.ts',
  'test/e2e/settle.test.ts',
  'test/e2e/stop.test.ts',
  'test/e2e/results-sync.test.ts',
  'test/e2e/bad-input.test.ts',
  'test/e2e/outage.test.ts',
  'test/e2e/disk-full.test.ts',
  'test/e2e/service-setup.test.ts',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rank = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.indexOf(path.relative(root, moduleId));
      return found < 0 ? LONGEST.length : found;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    // Most tests wait for processes and files, not for the processor.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      // A process of its own for each file would load the same modules a hundred times.
      { extends: true, test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: MEASURING, isolate: false } },
      { extends: true, test: { name: 'measuring', include: MEASURING } },
    ],
  },
});
