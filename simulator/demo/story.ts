/** The steps of the demo, in the order in which they are seen. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { commonLength } from '../../src/bytes.ts';
import { pc } from '../../src/cli/show/terminal.ts';
import { JobtailError } from '../../src/errors.ts';
import { showBytes, showCount } from '../../src/numbers.ts';
import { printable } from '../../src/printable.ts';
import { lockHolder } from '../../src/store/lock.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { Sandbox } from '../sandbox.ts';
import {
  type DemoStory,
  PROCESS_MS,
  requireAlive,
  requireRunning,
  runCommand,
  stopAgent,
  untilEnded,
} from './agents.ts';
import { LiveView } from './live-view.ts';
import { type AgentProcess, ALONE } from './parts.ts';
import type { Screen } from './screen.ts';
import { livePairs, type Sides, sizeOf, sum } from './sides.ts';
import { until } from './until.ts';

interface Story extends DemoStory {
  readonly sandbox: Sandbox;
  readonly job: SubmittedJob;
  readonly sides: Sides;
}

/** The share of its time after which the job is in the middle of its output. */
const KILL_AT = 0.4;
const LEAST_GROWTH_BYTES = 16 * 1024;

/** Follows the job from its beginning to its end, with a kill in the middle; when it resolves, the agent has ended. */
export async function followJob(story: Story): Promise<void> {
  const agent = await startAgent(story);
  const { seconds, job } = story;
  const { screen } = story.parts;
  await command(story, 'watch', job.jobId);
  await showView(story, agent);
  screen.step('The job runs: lines as they arrive in the mirrors');
  screen.line(`It writes far too many to read, so this is a selection, for ${seconds} seconds.`);
  screen.line();
  const view = new LiveView(screen, story.sides);
  // Whichever of the two ends first, ends the other.
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, story.signal]);
  const outcomes = await Promise.allSettled([
    view.show(signal).finally(() => over.abort()),
    killAndFinish({ ...story, signal }, agent, view).finally(() => over.abort()),
  ]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  const { arrived, shown } = view.selection;
  screen.line(`${showCount(arrived)} lines have arrived; ${shown} of them were shown.`);
}

async function startAgent({ parts, signal }: Story): Promise<AgentProcess> {
  parts.screen.quote('$ agent run -c config.yaml');
  const agent = await parts.startAgent(ALONE, 'run');
  const isUp = () => {
    requireAlive('the agent', agent.process);
    return lockHolder(path.join(parts.directory, 'state'))?.pid === agent.process.pid ? true : undefined;
  };
  await until(isUp, { what: 'the agent was up', limitMs: PROCESS_MS, signal });
  return agent;
}

/** The link of the page, which goes on over the kill; it takes a moment until it is served. */
async function showView(story: Story, agent: AgentProcess): Promise<void> {
  const { parts, signal } = story;
  const isServed = () => {
    requireAlive('the agent', agent.process);
    return agent.log().includes('view listening') ? true : undefined;
  };
  await until(isServed, { what: 'the view was served', limitMs: PROCESS_MS, signal });
  await command(story, 'view', '--no-open');
  parts.screen.line('Open this in a browser to see the job grow, over the kill as well.');
}

/** Runs a command of the agent and shows it with its output; another exit code than 0 is an error. */
async function command(story: Story, name: string, ...args: readonly string[]): Promise<void> {
  const code = await exitCodeOf(story, name, ...args);
  if (code === 0) return;
  throw new JobtailError('internal', `agent ${name} ended with exit code ${code}`, {
    hint: 'what it printed stands above',
  });
}

async function exitCodeOf(story: Story, name: string, ...args: readonly string[]): Promise<number | null> {
  const { screen, directory } = story.parts;
  const { code, output, log } = await runCommand(story, ALONE, name, ...args);
  const line = `$ ${['agent', name, ...args].join(' ')} -c config.yaml`;
  // At once: lines of the job would stand between.
  screen.quote(`${line}\n${output()}${log()}`.replaceAll(`${directory}/`, ''));
  return code;
}

async function killAndFinish(story: Story, agent: AgentProcess, view: LiveView): Promise<void> {
  const { job, parts } = story;
  const { screen } = parts;
  await job.submit();
  await killInTheMiddle(story, agent, view);
  const second = await startAgain(story);
  view.resume();
  await untilEnded(story, { 'the agent': second.process });
  screen.step('The job has ended: one last complete pass');
  await command(story, 'jobs');
  const waited = await exitCodeOf(story, 'wait', job.jobId, '--timeout', '1s');
  screen.line(
    `Exit code ${waited}. Without a time limit it waits until no byte came for a minute and all files are verified.`,
  );
  screen.line(
    'Then it is 0 for Finished, 10 for Failed: a step of a script. Here, unwatch makes that last pass at once:',
  );
  await command(story, 'unwatch', job.jobId);
  await stopAgent(story, 'the agent', second.process);
  showEvents(story);
}

/** What the rule of the configuration passed to its program. */
function showEvents({ parts }: Story): void {
  const { screen } = parts;
  screen.line('Events that the rule under notify: passed to its program:');
  for (const { type, taskId, file, generation, line, text } of parts.events) {
    const where = line === undefined ? `generation ${generation}` : `line ${line}: ${printable(text ?? '')}`;
    screen.line(`  ${type}  ${taskId} ${file}, ${where}`);
  }
}

/** Bytes of each mirror, in the order of the pairs. */
const mirrorSizes = (sides: Sides) => Promise.all(livePairs(sides).map(({ mirror }) => sizeOf(mirror)));

async function killInTheMiddle(story: Story, agent: AgentProcess, view: LiveView): Promise<void> {
  const { parts, seconds, sides, signal } = story;
  const { screen } = parts;
  const startedAt = performance.now();
  await until(
    async () => {
      requireAlive('the agent', agent.process);
      requireRunning(story);
      if (performance.now() - startedAt < KILL_AT * 1_000 * seconds) return undefined;
      return sum(await mirrorSizes(sides)) > 0 ? true : undefined;
    },
    { what: 'a line had arrived', limitMs: PROCESS_MS + 1_000 * seconds, signal },
  );
  agent.process.signal('SIGKILL');
  const end = await until(() => agent.process.exit, { what: 'the agent was killed', limitMs: PROCESS_MS, signal });
  view.pause();
  screen.step('kill -9, in the middle of the output');
  screen.line(pc.red(`process ${agent.process.pid} is dead (${end.signal}): it could neither finish nor tidy up`));
  await checkBeginnings(screen, sides);
}

/** What a crash must never leave: a mirror that is not the beginning of its file. */
async function checkBeginnings(screen: Screen, sides: Sides): Promise<void> {
  const rewritten: string[] = [];
  let bytes = 0;
  for (const { taskId, file, mirror, cluster } of livePairs(sides)) {
    const here = await fs.readFile(mirror);
    const there = await fs.readFile(cluster).catch(() => Buffer.alloc(0));
    bytes += here.length;
    if (there.subarray(0, here.length).equals(here)) continue;
    if (file !== 'progress') {
      const at = commonLength(here, there);
      const around = [here, there].map((bytes) => JSON.stringify(bytes.subarray(at - 16, at + 16).toString('latin1')));
      throw new JobtailError(
        'internal',
        `after the kill, the mirror of ${taskId} ${file} (${here.length} bytes) was not the beginning of its file ` +
          `(${there.length} bytes): they differ at ${at}, ${around.join(' and ')}`,
      );
    }
    rewritten.push(`${taskId} ${file}`);
  }
  screen.line(`The mirrors hold ${showBytes(bytes)}, each an exact beginning of its file.`);
  for (const name of rewritten) screen.line(`(But for ${name}: the job has just rewritten it.)`);
}

async function startAgain(story: Story): Promise<AgentProcess> {
  const { parts, sandbox, job, sides, signal } = story;
  const { screen } = parts;
  const before = await mirrorSizes(sides);
  const pairs = livePairs(sides);
  const clusterSizes = () => Promise.all(pairs.map(({ cluster }) => sizeOf(cluster)));
  const atKill = sum(await clusterSizes());
  const grown = await until(
    async () => {
      const bytes = sum(await clusterSizes()) - atKill;
      return bytes >= LEAST_GROWTH_BYTES || job.tasks.every(({ state }) => state === 'ended') ? bytes : undefined;
    },
    { what: 'the job had written more', limitMs: PROCESS_MS, signal },
  );
  screen.line(`The job does not care: it has written ${showBytes(grown)} more by now.`);
  const restartedAt = Date.now();
  const agent = await startAgent(story);
  const call = await until(
    () =>
      sandbox.calls.find(
        ({ operation, atMs }) => operation === 'DownloadPartsOfJobFilesFromCluster' && atMs >= restartedAt,
      ),
    { what: 'the agent requested more', limitMs: PROCESS_MS, signal },
  );
  screen.line('It goes on a little before the end of each mirror, to see that it fits:');
  pairs.forEach(({ taskId, file }, index) => {
    if (file !== 'stdout') return;
    const entry = call.entries?.find(
      (asked) => asked?.submittedTaskInfoId === taskId && asked.fileType === 'StandardOutputFile',
    );
    if (entry?.offset === undefined || entry.offset === null) return;
    const [here, from] = [before[index] ?? 0, Number(entry.offset)].map(showCount);
    screen.line(`  ${taskId} stdout: ${here} bytes are here; requested from byte ${from} on`);
  });
  screen.line();
  return agent;
}
