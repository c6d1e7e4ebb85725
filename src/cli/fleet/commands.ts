/** Commands for a fleet: any machine with the configuration places them, and the owner of the job executes them. */
import type { PassAnswer, PassSummary } from '../../agent/pass/complete-pass.ts';
import { type Config, type FleetConfig, hasFleet } from '../../config/config.ts';
import { notWatched } from '../../daemon/state.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { FleetClient } from '../../fleet/commands/client.ts';
import type { JobId } from '../../job.ts';
import { countOf } from '../../numbers.ts';
import { runningAgent } from '../../store/lock.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { answerFrom, resultOf } from '../ask-agent.ts';
import { untilStopped } from '../process.ts';
import { hasTasks } from '../register.ts';
import { until } from '../waiting.ts';
import { followerIn, isAnyThere, withFleet } from './client.ts';

const TICK_MS = 100;
const EXECUTED_MS = 10_000;

const NOT_RUNNING = 'no agent of the fleet is running: the command is stored, and executed when one starts (agent run)';

/** Places the command to follow a job, waits a moment for its execution, and shows the state. */
export async function watchByFleet(
  config: FleetConfig,
  { request, waitsForTasks }: { readonly request: WatchRequest; readonly waitsForTasks: boolean },
  signal: AbortSignal,
  show: (store: Store, note: string, wasSettled: boolean) => void,
): Promise<void> {
  await withFleet(config, async (client) => {
    const { jobId } = request;
    const wasSettled = (await client.owners(jobId))[0]?.state === 'settled';
    const commandId = await client.command({ jobId, kind: 'watch', body: request });
    const isAnybodyThere = (await client.agents.all()).some(({ state }) => state === 'alive');
    const limit = { endsAt: performance.now() + (isAnybodyThere ? EXECUTED_MS : 0), signal };
    await until(async () => (await client.commands.answerOf(commandId)) !== undefined, limit, TICK_MS);
    if (waitsForTasks) await until(async () => hasTasks(await client.jobs({ only: jobId }), jobId), limit, 5 * TICK_MS);
    const note = isAnybodyThere ? (await followerIn(client, jobId)).text : NOT_RUNNING;
    show(await client.jobs({ only: jobId }), note, wasSettled);
  });
}

/** Requests a complete pass from the owner of the job; the kind `unwatch` ends the job with it. */
export function passByFleet(config: FleetConfig, jobId: JobId, kind: 'sync' | 'unwatch'): Promise<PassSummary> {
  return untilStopped((signal) =>
    withFleet(config, async (client) => {
      await requireKnown(client, jobId);
      const commandId = await client.command({ jobId, kind });
      return resultOf<{ summary: PassSummary }>(await answerTo(commandId, client, signal)).summary;
    }),
  );
}

export async function endByFleet(config: FleetConfig, jobId: JobId): Promise<void> {
  await withFleet(config, async (client) => {
    await requireKnown(client, jobId);
    await client.command({ jobId, kind: 'end' });
  });
}

async function requireKnown(client: FleetClient, jobId: JobId): Promise<void> {
  if ((await client.owners(jobId)).length === 0) throw notWatched(jobId);
}

/** A broken connection ends the wait, not the command. */
export async function answerTo(commandId: string, client: FleetClient, signal: AbortSignal): Promise<PassAnswer> {
  const read = () => client.commands.answerOf(commandId);
  const answer = await answerFrom({ read, isThere: () => isAnyThere(client) }, signal).catch((thrown: unknown) => {
    const { code, message } = asJobtailError(thrown);
    if (code === 'aborted') throw thrown;
    const hint = 'wait: the command is stored, and an agent executes it';
    throw new JobtailError('fleet', message, { hint, cause: thrown });
  });
  if (answer === undefined) throw new JobtailError('fleet', NOT_RUNNING);
  if ('summary' in answer || 'error' in answer) return answer;
  const message = 'the fleet lost the command: a backup of its database was restored, or the job was removed';
  throw new JobtailError('fleet', message, { hint: 'run the command again' });
}

const DRAIN_POLL_MS = 200;

export async function drain(config: Config): Promise<void> {
  if (!hasFleet(config)) {
    const hint = 'stop the agent: it continues at its next start, and loses nothing';
    throw new JobtailError('usage', 'jobs cannot be handed off: the configuration has no fleet', { hint });
  }
  const { name } = config.fleet;
  await withFleet(config, async (client) => {
    const ownRow = async () => (await client.agents.all()).find((agent) => agent.name === name);
    const before = await ownRow();
    if (!(await client.agents.askToDrain(name))) {
      process.stdout.write(`no agent called ${name} is running\n`);
      return;
    }
    const isOver = async () => {
      const row = await ownRow();
      if (row?.state === 'alive' && row.startedAt !== before?.startedAt) {
        const message = `the agent ${name} restarted, and does not drain`;
        throw new JobtailError('fleet', message, { hint: 'run agent run --drain again' });
      }
      return (row === undefined || row.state === 'gone') && runningAgent(config.state.directory) === undefined;
    };
    await untilStopped((signal) =>
      until(isOver, { endsAt: Number.POSITIVE_INFINITY, signal }, DRAIN_POLL_MS).catch((thrown: unknown) => {
        throw signal.aborted ? new JobtailError('aborted', 'it was stopped; the agent continues to drain') : thrown;
      }),
    );
    const left = (await client.owners()).filter(({ owner }) => owner === name).length;
    if (left > 0)
      throw new JobtailError('fleet', `${name} ended, and did not hand off ${countOf(left, 'job')}`, {
        hint: 'other agents acquire them when its lease expires: agent status shows their owners',
      });
    process.stdout.write(`${name} has handed its jobs over and ended\n`);
  });
}
