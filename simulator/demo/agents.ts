/** The agents of a demo: their commands, and the jobs that they follow to the end. */
import { JobtailError } from '../../src/errors.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { TaskProcess } from '../cluster/task-process.ts';
import type { AgentProcess, DemoParts } from './parts.ts';
import { until } from './until.ts';

/** For a process to start or to end, on a very slow machine. */
export const PROCESS_MS = 30_000;
const PASS_MS = 120_000;

export interface DemoStory {
  readonly parts: DemoParts;
  /** Held: they have not begun. */
  readonly jobs: readonly SubmittedJob[];
  readonly seconds: number;
  readonly signal: AbortSignal;
}

export function requireAlive(name: string, { exit }: TaskProcess): void {
  if (exit !== undefined) throw new JobtailError('internal', `${name} ended by itself (${exit.signal ?? exit.code})`);
}

/** @throws JobtailError timeout if a job is over: the demo kills in the middle of its output */
export function requireRunning({ jobs }: DemoStory): void {
  if (!jobs.some(({ tasks }) => tasks.some(({ state }) => state === 'ended'))) return;
  throw new JobtailError('timeout', 'a job was over before an agent could be killed in the middle of it', {
    hint: 'the machine is too busy for a job that short: try --seconds 60',
  });
}

/** Runs a command with the configuration of an agent to its end. */
export async function runCommand(
  { parts, signal }: DemoStory,
  name: string,
  command: string,
  ...args: readonly string[]
): Promise<AgentProcess & { readonly code: number | null }> {
  const running = await parts.startAgent(name, command, ...args);
  const ending = { what: `agent ${command} had ended`, limitMs: PASS_MS, signal };
  const { code } = await until(() => running.process.exit, ending);
  return { ...running, code };
}

/** Until all tasks have ended; the agents must not end before. */
export async function untilEnded(story: DemoStory, agents: Readonly<Record<string, TaskProcess>>): Promise<void> {
  const tasks = story.jobs.flatMap((job) => job.tasks);
  const isOver = () => {
    for (const [name, agent] of Object.entries(agents)) requireAlive(name, agent);
    return tasks.every(({ state }) => state === 'ended') || undefined;
  };
  const limitMs = PROCESS_MS + 3_000 * story.seconds;
  await until(isOver, { what: 'the jobs had ended', limitMs, signal: story.signal });
  for (const { taskId, exit } of tasks) {
    if (exit?.code !== 0) throw new JobtailError('internal', `task ${taskId} failed (${exit?.signal ?? exit?.code})`);
  }
}

export async function stopAgent({ signal }: DemoStory, name: string, agent: TaskProcess): Promise<void> {
  agent.signal('SIGTERM');
  const { code } = await until(() => agent.exit, { what: `${name} had stopped`, limitMs: PROCESS_MS, signal });
  if (code !== 0) throw new JobtailError('internal', `${name} stopped with exit code ${code}`);
}
