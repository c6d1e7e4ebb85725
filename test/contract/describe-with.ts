import { describe } from 'vitest';

/** Tests that need a program of the machine. Where it is missing they are skipped, and the terminal says why. */
export function describeWith(title: string, missing: string | undefined, tests: () => void): void {
  if (missing === undefined) {
    describe(title, tests);
    return;
  }
  process.stderr.write(`SKIPPED: ${title}: ${missing}\n`);
  describe.skip(`${title} (skipped: ${missing})`, tests);
}
