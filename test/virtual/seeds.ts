/** Runs seeds in a process of its own (`runApart` of many.ts), and prints what came of it. */
import { runSeeds } from './many.ts';

for (const seeds of process.argv.slice(2)) process.stdout.write(JSON.stringify(await runSeeds(JSON.parse(seeds))));
