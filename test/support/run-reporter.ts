/** Prints files that fail, on a terminal slow ones, then skipped tests with their reasons and a line of counts. */
import type { SerializedError, TestCase, TestModule, TestRunEndReason } from 'vitest/node';
import { DefaultReporter } from 'vitest/node';

export class RunReporter extends DefaultReporter {
  override printTestModule(module: TestModule): void {
    if (module.state() === 'failed') super.printTestModule(module);
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, errors, reason);
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const skipped = tests.filter((test) => test.result().state === 'skipped');
    for (const [why, number] of reasonsOf(skipped)) process.stdout.write(`${number} skipped: ${why}\n`);
    process.stdout.write(
      `${count('passed')} passed, ${count('failed')} failed, ${skipped.length} skipped in ${modules.length} files; ` +
        `--sequence.seed=${this.ctx.config.sequence.seed} gives this order again\n`,
    );
  }
}

/** Each reason and the number of its tests; packages that are missing come last, as a command that installs them. */
function reasonsOf(skipped: readonly TestCase[]): Map<string, number> {
  const reasons = new Map<string, number>();
  const add = (why: string) => reasons.set(why, (reasons.get(why) ?? 0) + 1);
  const forPackages = skipped.filter((test) => (test.meta().missingPackages ?? []).length > 0);
  for (const test of skipped) if (!forPackages.includes(test)) add(test.meta().unmetNeed ?? 'marked so in the test');
  const packages = [...new Set(forPackages.flatMap((test) => test.meta().missingPackages ?? []))].sort().join(' ');
  if (packages !== '')
    reasons.set(
      `no Debian packages; to run them: apt-get install -y --no-install-recommends ${packages}`,
      forPackages.length,
    );
  return reasons;
}
