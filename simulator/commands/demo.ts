/** `agent demo`: the simulated cluster and the agent together, and every byte compared. It leaves nothing behind. */
import { setMaxListeners } from 'node:events';
import { untilStopped } from '../../src/cli/process.ts';
import { pc } from '../../src/cli/show/terminal.ts';
import { LinkedAbort } from '../../src/linked-abort.ts';
import { type Comparison, compareSides } from '../demo/comparison.ts';
import { conclude, showComparison } from '../demo/conclusion.ts';
import { demoJob, demoNames } from '../demo/demo-job.ts';
import { demoOfFleet } from '../demo/fleet-demo.ts';
import { ALONE, DemoParts } from '../demo/parts.ts';
import { followJob } from '../demo/story.ts';
import type { Protocol } from '../description.ts';
import { freePort } from '../free-port.ts';
import { releaseNamed } from '../rest/releases.ts';

const SECONDS = 15;
/** The jobs have to go on for longer than it takes to notice that an agent is gone. */
const FLEET_SECONDS = 25;

interface DemoOptions {
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
    await run(options, left.signal).finally(() => process.off('SIGHUP', leave));
  });
}

async function run(options: DemoOptions, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const { fleet = false, all = false } = options;
  const { seconds = fleet ? FLEET_SECONDS : SECONDS } = options;
  const parts = new DemoParts();
  try {
    const comparison = fleet
      ? await demoOfFleet(parts, { seconds, all }, signal)
      : await demoOfOne(parts, { ...options, seconds, all }, signal);
    await parts.remove();
    conclude(parts.screen, comparison, performance.now() - startedAt);
  } catch (error) {
    parts.showFailure(signal);
    throw error;
  } finally {
    await parts.remove();
  }
}

type OneAgentOptions = Required<Omit<DemoOptions, 'fleet'>>;

async function demoOfOne(
  parts: DemoParts,
  { seconds, all, protocol, ...options }: OneAgentOptions,
  signal: AbortSignal,
): Promise<Comparison> {
  const { screen } = parts;
  screen.write(`${pc.bold('jobtail demo')}: a simulated cluster, a job, and the agent that mirrors its files.\n`);
  screen.write(`It all happens in ${parts.directory}, which is removed at the end.\n`);

  screen.step('A simulated cluster');
  const release = releaseNamed(options.release);
  const sandbox = await parts.startSandbox({ release });
  const job = await sandbox.submitJob({ ...demoJob({ seconds, names: demoNames(protocol, release) }), held: true });
  const [solver, training, sensors] = job.tasks.map(({ taskId }) => taskId);
  const spoken = protocol === 'rest' ? ` over REST, as release ${release}` : '';
  screen.line(`${sandbox.baseUrl} answers as the real ones do${spoken}. Job ${job.jobId} is in its queue:`);
  screen.line(`task ${solver} writes the log of a flow solver, in pieces that end anywhere;`);
  screen.line(`task ${training} CRLF lines of a training, a progress bar, a file that is rewritten, large results;`);
  screen.line(`task ${sensors} bytes that are no UTF-8, and many languages.`);

  screen.step('The agent');
  screen.line('config.yaml is all it needs:');
  const sections = {
    state: { directory: 'state' },
    results: { intervalSeconds: 1 },
    notify: [{ on: ['rewritten', 'match'], match: '^done', command: ['sh', '-c', 'cat >> "$0"', parts.eventsFile] }],
    // Both agents have the same one, so that its page goes on over the kill.
    view: { listen: `127.0.0.1:${await freePort()}` },
  };
  screen.quote(parts.configure(sandbox, ALONE, sections, protocol));
  const sides = { jobId: job.jobId, tasks: job.tasks, mirrorDirectory: parts.mirrorDirectory };
  await followJob({ parts, sandbox, job, jobs: [job], seconds, sides, signal });

  screen.step('Every file, on the cluster and here');
  const comparison = await compareSides(sides);
  showComparison(screen, comparison, all);
  return comparison;
}
