/** `agent demo`: the simulated cluster and the agent together, and every byte compared. It leaves nothing behind. */
import { setMaxListeners } from 'node:events';
import { untilStopped } from '../../src/cli/process.ts';
import { pc } from '../../src/cli/show/colours.ts';
import { LinkedAbort } from '../../src/linked-abort.ts';
import { type Comparison, compareSides } from '../demo/comparison.ts';
import { conclude, showComparison } from '../demo/conclusion.ts';
import { demoOfFleet } from '../demo/fleet-demo.ts';
import { DemoParts } from '../demo/parts.ts';
import { followJob } from '../demo/story.ts';
import type { Protocol } from '../description.ts';
import { releaseNamed } from '../rest/releases.ts';

/** Of the agent's log, shown where the demo fails. */
const LOG_LINES = 10;

const SECONDS = 15;
/** The jobs have to go on for longer than it takes to notice that an agent is gone. */
const FLEET_SECONDS = 25;

export interface DemoOptions {
  /** How long the job writes, or the jobs of a fleet; by default `SECONDS` or `FLEET_SECONDS`. */
  readonly seconds?: number;
  /** Several agents; some are killed or stopped. */
  readonly fleet?: boolean;
  /** Every file gets a row of its own in the table. */
  readonly all?: boolean;
  readonly protocol: Protocol;
  /** Of REST: a version, as `6.3`. */
  readonly release: string;
}

export function demo(options: DemoOptions): Promise<void> {
  return untilStopped(async (stop) => {
    // The terminal was closed, or the reader of the output is gone.
    const left = new LinkedAbort(stop);
    const leave = () => left.abort();
    process.on('SIGHUP', leave);
    // It stays for ever: the error of a last line may come late.
    process.stdout.on('error', leave);
    // Whatever waits listens to it.
    setMaxListeners(0, left.signal);
    const { fleet = false, seconds, all = false } = options;
    const run = fleet
      ? demoOfFleet({ seconds: seconds ?? FLEET_SECONDS, all }, left.signal)
      : runAndTidyUp({ ...options, seconds: seconds ?? SECONDS, all }, left.signal);
    await run.finally(() => process.off('SIGHUP', leave));
  });
}

type OneAgentOptions = Required<Omit<DemoOptions, 'fleet'>>;

async function runAndTidyUp(options: OneAgentOptions, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const { protocol } = options;
  const parts = new DemoParts({ protocol, release: releaseNamed(options.release) });
  const { screen } = parts;
  try {
    const comparison = await runAndCompare(parts, options, signal);
    await parts.remove();
    conclude(screen, comparison, performance.now() - startedAt);
  } catch (error) {
    screen.endProgress();
    if (signal.aborted) screen.write('\ninterrupted: everything is stopped and removed\n');
    else {
      const output = parts.outputOf('run').trimEnd();
      if (output !== '') screen.quote(`the agent logged last:\n${output.split('\n').slice(-LOG_LINES).join('\n')}`);
    }
    throw error;
  } finally {
    await parts.remove();
  }
}

async function runAndCompare(parts: DemoParts, options: OneAgentOptions, signal: AbortSignal): Promise<Comparison> {
  const { screen } = parts;
  const { seconds, all } = options;
  screen.write(`${pc.bold('jobtail demo')}: a simulated cluster, a job, and the agent that mirrors its files.\n`);
  screen.write(`It all happens in ${parts.directory}, which is removed at the end.\n`);

  screen.step('A simulated cluster');
  const sandbox = await parts.startSandbox();
  const job = await parts.createJob(sandbox, seconds);
  const [languages, numbers] = job.tasks.map(({ taskId }) => taskId);
  const spoken = options.protocol === 'rest' ? ` over REST, as release ${sandbox.habits.release}` : '';
  screen.line(`${sandbox.baseUrl} answers as the real ones do${spoken}. Job ${job.jobId} is in its queue:`);
  screen.line(`task ${languages} writes many languages, in colour, in pieces that cut characters;`);
  screen.line(`task ${numbers} CRLF lines, progress bars, a file that is rewritten, large results.`);

  screen.step('The agent');
  screen.line('config.yaml is all it needs:');
  screen.quote(await parts.configure(sandbox));
  const sides = { jobId: job.jobId, tasks: job.tasks, mirrorDirectory: parts.mirrorDirectory };
  await followJob({ parts, screen, sandbox, job, seconds, sides, signal });

  screen.step('Every file, on the cluster and here');
  const comparison = await compareSides(sides);
  showComparison(screen, comparison, all);
  return comparison;
}
