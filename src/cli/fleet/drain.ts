/** `agent run --drain`: the agent of this configuration hands its jobs over, and ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, hasFleet } from '../../config/config.ts';
import { JobtailError } from '../../errors.ts';
import { lockHolder } from '../../store/lock.ts';
import { untilStopped } from '../process.ts';
import { withFleet } from './client.ts';

const LOOK_MS = 200;

/** Resolves when it has ended. @throws JobtailError */
export async function drain(config: Config): Promise<void> {
  if (!hasFleet(config)) {
    const hint = 'a stop of it loses nothing: it goes on where it was at its next start';
    throw new JobtailError('usage', 'there is nobody to hand jobs over to: the configuration names no fleet', { hint });
  }
  const { name } = config.fleet;
  await withFleet(config, async (client) => {
    if (!(await client.askToDrain(name))) {
      process.stdout.write(`no agent called ${name} is running\n`);
      return;
    }
    const isThere = async () => (await client.agents()).some((agent) => agent.name === name && agent.state !== 'gone');
    const isRunning = async () => (await isThere()) || lockHolder(config.state.directory) !== undefined;
    await untilStopped(async (signal) => {
      while (!signal.aborted && (await isRunning())) await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted) throw new JobtailError('aborted', 'it goes on handing its jobs over');
    });
    process.stdout.write(`${name} has handed its jobs over and ended\n`);
  });
}
