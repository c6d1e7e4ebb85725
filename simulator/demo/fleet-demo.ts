/** `agent demo --fleet`: three agents on a real PostgreSQL; one is killed, one stopped; every byte is compared. */
import { pc } from '../../src/cli/show/terminal.ts';
import type { JobSpec } from '../cluster/specs.ts';
import { type Comparison, compareSides } from './comparison.ts';
import { showComparison } from './conclusion.ts';
import { demoJob } from './demo-job.ts';
import { AGENTS, followJobs } from './fleet-story.ts';
import type { DemoParts } from './parts.ts';
import type { Sides } from './sides.ts';

const JOBS = 6;
/** The shortest lease that there is: the demo is over in a minute. */
const HEARTBEAT_SECONDS = 10;

interface FleetDemoOptions {
  /** How long the jobs write. */
  readonly seconds: number;
  /** Every file gets a row of its own in the table. */
  readonly all: boolean;
}

export async function demoOfFleet(
  parts: DemoParts,
  options: FleetDemoOptions,
  signal: AbortSignal,
): Promise<Comparison> {
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
  const jobs = await Promise.all(numbers.map((number) => sandbox.submitJob(jobOf(options.seconds, number))));
  screen.line(`${sandbox.baseUrl} answers as the real ones do. ${JOBS} jobs are in its queue.`);

  screen.step('Three agents, one directory of mirrors');
  screen.line(`Each has a configuration like this one, with a name and a state of its own:`);
  const [text = ''] = AGENTS.map((name) =>
    parts.configure(sandbox, name, {
      state: { directory: `state-${name}` },
      results: { intervalSeconds: 2 },
      fleet: { name, urlFile: 'database-url', heartbeatSeconds: HEARTBEAT_SECONDS },
    }),
  );
  screen.quote(text);
  const sides = jobs.map(({ jobId, tasks }) => ({ jobId, tasks, mirrorDirectory: parts.mirrorDirectory }));
  await followJobs({ parts, jobs, sides, seconds: options.seconds, signal });

  screen.step('Every file, on the cluster and here');
  const comparison = await compareAll(sides);
  showComparison(screen, comparison, options.all);
  return comparison;
}

/** A job of one task that does not begin yet: one of the tasks of the demo. */
function jobOf(seconds: number, number: number): JobSpec {
  const { tasks } = demoJob({ seconds, seed: number });
  return { tasks: tasks.filter((_, index) => index === number % tasks.length), held: true };
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
