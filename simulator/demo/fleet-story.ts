/** The steps of the demo of a fleet, in the order in which they are seen. */

import { setTimeout as sleep } from 'node:timers/promises';
import { pc } from '../../src/cli/show/terminal.ts';
import { JobtailError } from '../../src/errors.ts';
import { countOf } from '../../src/numbers.ts';
import { logLine } from '../../src/printable.ts';
import type { TaskProcess } from '../cluster/task-process.ts';
import {
  type DemoStory,
  PROCESS_MS,
  requireAlive,
  requireRunning,
  runCommand,
  stopAgent,
  untilEnded,
} from './agents.ts';
import type { AgentProcess } from './parts.ts';
import { liveGrowth, livePairs, type Sides, sizeOf, sum } from './sides.ts';
import { until } from './until.ts';

export const AGENTS = ['anna', 'ben', 'cleo'] as const;
type AgentName = (typeof AGENTS)[number];

interface FleetStory extends DemoStory {
  readonly sides: readonly Sides[];
}

/** What is promised is half a minute. */
const TAKEOVER_MS = 90_000;
/** The share of their time after which the jobs are in the middle of their output. */
const HARM_AT = 0.2;
const PROGRESS_MS = 500;

type Agents = ReadonlyMap<AgentName, AgentProcess>;

/**
 * Follows the jobs to their end, with one agent killed and one stopped in the middle; when it resolves, all have ended.
 */
export async function followJobs(story: FleetStory): Promise<void> {
  const { parts, jobs, signal } = story;
  const { screen } = parts;
  const agents = await startAgents(story);
  await watchJobs(story);
  screen.step('The jobs run; each is followed by one of the three');
  for (const job of jobs) await job.submit();
  const over = new AbortController();
  const shown = showProgress(story, AbortSignal.any([over.signal, signal]));
  try {
    const owners = await until(async () => ownersIfAll(story, 'anna', AGENTS), {
      what: 'each agent had jobs',
      limitMs: PROCESS_MS,
      signal,
    });
    for (const name of AGENTS) screen.line(`${name} follows ${countOf(jobsOf(owners, name), 'job')}.`);
    await harm(story, agents);
    await untilEnded(story, { anna: processOf(agents, 'anna'), cleo: processOf(agents, 'cleo') });
    screen.endProgress();
  } finally {
    over.abort();
    await shown;
  }
  await finish(story, agents);
}

async function startAgents({ parts, signal }: FleetStory): Promise<Agents> {
  const started = new Map<AgentName, AgentProcess>();
  for (const name of AGENTS) {
    parts.screen.quote(`$ agent run -c ${name}.yaml`);
    started.set(name, await parts.startAgent(name, 'run'));
  }
  for (const [name, agent] of started) {
    const isIn = () => {
      requireAlive(name, agent.process);
      return agent.log().includes('joined the fleet') || undefined;
    };
    await until(isIn, { what: `${name} was in the fleet`, limitMs: PROCESS_MS, signal });
  }
  return started;
}

/** Each agent gets some of the commands. */
async function watchJobs(story: FleetStory): Promise<void> {
  await Promise.all(
    AGENTS.map(async (name, index) => {
      const mine = story.jobs.filter((_, number) => number % AGENTS.length === index);
      for (const { jobId } of mine) await command(story, name, 'watch', jobId);
    }),
  );
}

/** Runs a command with the configuration of an agent; what it printed. Another exit code than 0 is an error. */
async function command(story: FleetStory, name: AgentName, ...line: [string, ...string[]]): Promise<string> {
  const { code, output, log } = await runCommand(story, name, ...line);
  if (line[0] !== 'status') story.parts.screen.quote(`$ agent ${line.join(' ')} -c ${name}.yaml`);
  if (code === 0) return output();
  throw new JobtailError('internal', `agent ${line.join(' ')} ended with exit code ${code}`, {
    hint: log().trim() || output().trim(),
  });
}

/** By job, as `status` of any agent reports; undefined until each job has an owner, and each of `names` has jobs. */
async function ownersIfAll(story: FleetStory, asked: AgentName, names: readonly string[]) {
  const status = JSON.parse(await command(story, asked, 'status', '--json')) as {
    jobs: readonly { jobId: string; owner: string | null }[];
  };
  const owners = new Map(status.jobs.map(({ jobId, owner }) => [jobId, owner]));
  const isSo = story.jobs.every(({ jobId }) => names.includes(owners.get(jobId) ?? ''));
  return isSo && names.every((name) => jobsOf(owners, name) > 0) ? owners : undefined;
}

const jobsOf = (owners: ReadonlyMap<string, string | null>, name: string) =>
  [...owners.values()].filter((owner) => owner === name).length;

async function harm(story: FleetStory, agents: Agents): Promise<void> {
  const { parts, jobs, seconds, sides, signal } = story;
  const { screen } = parts;
  const [ben, cleo] = [processOf(agents, 'ben'), processOf(agents, 'cleo')];
  await sleep(HARM_AT * 1_000 * seconds, undefined, { signal }).catch(() => {});
  const isFlowing = async () =>
    sum(await Promise.all(sides.flatMap(livePairs).map(({ mirror }) => sizeOf(mirror)))) > 0;
  await until(async () => (await isFlowing()) || undefined, {
    what: 'a line had arrived',
    limitMs: PROCESS_MS,
    signal,
  });
  requireRunning(story);
  ben.signal('SIGKILL');
  cleo.signal('SIGSTOP');
  const harmedAt = performance.now();
  screen.step('kill -9 of one agent, kill -STOP of another, in the middle of the output');
  screen.line(
    pc.red(`ben (process ${ben.pid}) is dead; cleo (process ${cleo.pid}) stands still, and does not notice.`),
  );
  const ownersOfAnna = () => ownersIfAll(story, 'anna', ['anna']);
  await until(ownersOfAnna, { what: 'anna had all jobs', limitMs: TAKEOVER_MS, signal });
  const took = ((performance.now() - harmedAt) / 1_000).toFixed(1);
  screen.line(`After ${took} s anna follows all ${jobs.length} jobs.`);
  cleo.signal('SIGCONT');
  screen.step('kill -CONT: the agent that stood still goes on');
  screen.line('It still assumes that it owns jobs. Before it writes a byte, it detects that its lease expired:');
  const cleoAgent = agents.get('cleo');
  const notice = () => noticeOf(cleoAgent?.log() ?? '');
  screen.quote(await until(notice, { what: 'cleo had noticed', limitMs: PROCESS_MS, signal }));
}

/** The log lines of an agent about the jobs that it does not own any more; undefined without one. */
function noticeOf(log: string): string | undefined {
  // The last line may be half there.
  const lines = log.split('\n').slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as { msg: string; jobs?: number });
  const notice = events.findLast(({ msg }) => /^jobs (?:paused|lost)/.test(msg));
  return notice && logLine({ jobs: notice.jobs }, notice.msg);
}

function processOf(agents: Agents, name: AgentName): TaskProcess {
  const agent = agents.get(name);
  if (agent === undefined) throw new JobtailError('internal', `${name} was not started`);
  return agent.process;
}

/** Each job gets its last pass, by orders to both of the agents that are left; then these stop. */
async function finish(story: FleetStory, agents: Agents): Promise<void> {
  const { parts, jobs } = story;
  parts.screen.step('The jobs have ended: one last complete pass of each');
  const left = ['anna', 'cleo'] as const;
  await Promise.all(
    left.map(async (name, index) => {
      for (const { jobId } of jobs.filter((_, number) => number % left.length === index))
        await command(story, name, 'unwatch', jobId);
    }),
  );
  await Promise.all(left.map((name) => stopAgent(story, name, processOf(agents, name))));
}

/** How much of all jobs is here, until `stop` fires. */
async function showProgress({ parts, sides }: FleetStory, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    parts.screen.progress([await liveGrowth(sides)]);
    await sleep(PROGRESS_MS, undefined, { signal: stop }).catch(() => {});
  }
  parts.screen.endProgress();
}
