/** Runs the first seeds of fleets in a process of its own, until one fails. Prints the failure, or nothing. */
import { runFleet } from './run.ts';

const seeds = Number(process.argv[2]);
for (let seed = 1; seed <= seeds; seed += 1) {
  try {
    await runFleet(seed);
  } catch (error) {
    process.stdout.write(`${seed}: ${(error as Error).message}\n`);
    break;
  }
}
