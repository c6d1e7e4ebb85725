/** Runs the first seeds in a process of its own, until one fails. Prints the failure, or nothing. */
import { run } from './run.ts';

const seeds = Number(process.argv[2]);
for (let seed = 1; seed <= seeds; seed += 1) {
  try {
    await run(seed);
  } catch (error) {
    process.stdout.write(`${seed}: ${(error as Error).message}\n`);
    break;
  }
}
