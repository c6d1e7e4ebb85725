/** `agent demo --fleet`: three agents on a real PostgreSQL; one is killed, one stopped; every byte is compared. */
import { pc } from '../../src/cli/show/colours.ts';
import { type Comparison, compareSides } from './comparison.ts';
import { conclude, showComparison } from './conclusion.ts';
import { FleetParts } from './fleet-parts.ts';
import { AGENTS, followJobs } from './fleet-story.ts';
import type { Sides } from './sides.ts';

const JOBS = 6;

export interface FleetDemoOptions {
  /** How long the jobs write. */
  readonly seconds: number;
  /** Every file gets a row of its own in the table. */
  readonly all: boolean;
}

/** It leaves nothing behind, also where `signal` ends it. */
export async function demoOfFleet(options: FleetDemoOptions, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const parts = new FleetParts();
  try {
    const comparison = await runAndCompare(parts, options, signal);
    await parts.remove();
    conclude(parts.screen, comparison, performance.now() - startedAt);
  } catch (error) {
    parts.screen.endProgress();
    if (signal.aborted) parts.screen.write('\ninterrupted: everything is stopped and removed\n');
    else parts.screen.quote(parts.lastWords());
    throw error;
  } finally {
    await parts.remove();
  }
}

async function runAndCompare(parts: FleetParts, options: FleetDemoOptions, signal: AbortSignal): Promise<Comparison> {
  const { screen } = parts;
  screen.write(`${pc.bold('jobtail demo')}: a simulated cluster, ${JOBS} jobs, and three agents that share them.\n`);
  screen.write(`It all happens in ${parts.directory} and a PostgreSQL of its own; both are removed at the end.\n`);

  screen.step('A PostgreSQL, a simulated cluster');
  const database = await parts.startDatabase();
  signal.throwIfAborted();
  screen.line(
    `PostgreSQL listens at 127.0.0.1:${database.port}: which agent follows which job, and how far, stands there.`,
  );
  const sandbox = await parts.startSandbox();
  const numbers = Array.from({ length: JOBS }, (_, number) => number);
  const jobs = await Promise.all(numbers.map((number) => parts.createJob(sandbox, options.seconds, number)));
  screen.line(`${sandbox.baseUrl} answers as the real ones do. ${JOBS} jobs are in its queue.`);

  screen.step('Three agents, one directory of mirrors');
  screen.line(`Each has a configuration like this one, with a name and a state of its own:`);
  const [text = ''] = AGENTS.map((name) => parts.configure(sandbox, name));
  screen.quote(text);
  const sides = jobs.map(({ jobId, tasks }) => ({ jobId, tasks, mirrorDirectory: parts.mirrorDirectory }));
  await followJobs({ parts, jobs, sides, seconds: options.seconds, signal });

  screen.step('Every file, on the cluster and here');
  const comparison = await compareAll(sides);
  showComparison(screen, comparison, options.all);
  return comparison;
}

/** Of all jobs, with the number of the job before each name. */
async function compareAll(sides: readonly Sides[]): Promise<Comparison> {
  const compared = await Promise.all(
    sides.map(async (side) => {
      const { files, generations } = await compareSides(side);
      const named = (name: string) => `${side.jobId}/${name}`;
      return {
        files: files.map((file) => ({ ...file, name: named(file.name) })),
        generations: generations.map(named),
      };
    }),
  );
  return {
    files: compared.flatMap(({ files }) => files),
    generations: compared.flatMap(({ generations }) => generations),
  };
}
