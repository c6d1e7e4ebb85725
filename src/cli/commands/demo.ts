/** `agent demo`: the simulated cluster and the agent together, and every byte compared. It leaves nothing behind. */
import { setMaxListeners } from 'node:events';
import pc from 'picocolors';
import { EXIT } from '../../errors.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import { countOf, showBytes } from '../../numbers.ts';
import type { Protocol } from '../../sandbox/description.ts';
import { releaseNamed } from '../../sandbox/rest/releases.ts';
import { type Comparison, compareSides } from '../demo/comparison.ts';
import { comparisonTable, differences } from '../demo/comparison-table.ts';
import { DemoParts } from '../demo/parts.ts';
import type { Screen } from '../demo/screen.ts';
import { followJob } from '../demo/story.ts';
import { untilStopped } from '../process.ts';

/** Of the agent's log, shown where the demo fails. */
const LOG_LINES = 10;

export interface DemoOptions {
  /** How long the job writes. */
  readonly seconds: number;
  /** Every file gets a row of its own in the table. */
  readonly all?: boolean;
  readonly protocol: Protocol;
  /** Of REST: a version, as `6.3`. */
  readonly release: string;
}

export function demo(options: DemoOptions): Promise<void> {
  return untilStopped(async (stop) => {
    // The terminal was closed, or nobody reads the output any more.
    const left = new LinkedAbort(stop);
    const leave = () => left.abort();
    process.on('SIGHUP', leave);
    // It stays for ever: the error of a last line may come late.
    process.stdout.on('error', leave);
    // Whatever waits listens to it.
    setMaxListeners(0, left.signal);
    await runAndTidyUp(options, left.signal).finally(() => process.off('SIGHUP', leave));
  });
}

async function runAndTidyUp(options: DemoOptions, signal: AbortSignal): Promise<void> {
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
      const said = parts.outputOf('run').trimEnd();
      if (said !== '') screen.quote(`the agent said last:\n${said.split('\n').slice(-LOG_LINES).join('\n')}`);
    }
    throw error;
  } finally {
    await parts.remove();
  }
}

async function runAndCompare(parts: DemoParts, options: DemoOptions, signal: AbortSignal): Promise<Comparison> {
  const { screen } = parts;
  const { seconds, all = false } = options;
  screen.write(`${pc.bold('jobtail demo')}: a simulated cluster, a job, and the agent that mirrors its files.\n`);
  screen.write(`It all happens in ${parts.directory}, which is removed at the end.\n`);

  screen.step('A simulated cluster');
  const sandbox = await parts.startSandbox();
  const job = await parts.createJob(sandbox, seconds);
  const [languages, numbers] = job.tasks.map(({ taskId }) => taskId);
  const spoken = options.protocol === 'rest' ? ` over REST, as release ${sandbox.habits.release}` : '';
  screen.say(`${sandbox.baseUrl} answers as the real ones do${spoken}. Job ${job.jobId} is in its queue:`);
  screen.say(`task ${languages} writes many languages, in colour, in pieces that cut characters;`);
  screen.say(`task ${numbers} CRLF lines, progress bars, a file that is rewritten, large results.`);

  screen.step('The agent');
  screen.say('config.yaml is all it needs:');
  screen.quote(await parts.configure(sandbox));
  const sides = { jobId: job.jobId, tasks: job.tasks, mirrorDirectory: parts.mirrorDirectory };
  await followJob({ parts, screen, sandbox, job, seconds, sides, signal });

  screen.step('Every file, on the cluster and here');
  const comparison = await compareSides(sides);
  const { lines, note } = comparisonTable(comparison, { columns: Math.min(screen.columns, 200), all });
  screen.write(`${lines}\n\n`);
  screen.say(pc.dim(note));
  for (const name of comparison.generations)
    screen.say(pc.dim(`Kept besides: ${name}, from before the job rewrote it.`));
  return comparison;
}

/** The last line says how it went. */
function conclude(screen: Screen, comparison: Comparison, tookMs: number): void {
  const { files } = comparison;
  const different = differences(comparison);
  const bytes = files.reduce((total, file) => total + file.bytes, 0);
  const took = `${(tookMs / 1000).toFixed(1)} s`;
  screen.write('\n');
  for (const line of different) screen.write(`${pc.red(line)}\n`);
  if (different.length === 0) {
    screen.write(`${pc.green(pc.bold(`all ${files.length} files equal`))} (${showBytes(bytes)}), in ${took}\n`);
    return;
  }
  screen.write(`${pc.red(pc.bold(`${different.length} of ${countOf(files.length, 'file')} not equal`))}, in ${took}\n`);
  process.exitCode = EXIT.failed;
}
