/** Says, as the last line of a run, what would have to be installed for the tests that were skipped (needs.ts). */
import type { Reporter, TestModule } from 'vitest/node';

export class MissingPackages implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const affected = tests.map((test) => test.meta().missingPackages ?? []).filter(({ length }) => length > 0);
    if (affected.length === 0) return;
    const packages = [...new Set(affected.flat())].sort().join(' ');
    process.stderr.write(
      `${affected.length} tests were skipped, in whole or in part, for lack of Debian packages; to run them: ` +
        `apt-get install -y --no-install-recommends ${packages}\n`,
    );
  }
}
