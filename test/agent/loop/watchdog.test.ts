/** The turn of the agent, by which the watchdog of systemd sees that it works. */
import { expect, it, vi } from 'vitest';
import { Calls } from '../../../src/agent/calls.ts';
import type { PartRequest } from '../../../src/agent/ports/server.ts';
import { BEHIND_EVERY_END, keyText, type TaskId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent, startJob } from '../../support/composed-agent.ts';
import { TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';

it('the agent reports no turn while the queue of calls makes no progress', async () => {
  const clock = new HeldClock();
  const { agent } = await startAgent(new ModelRemote(), { clock });
  let turns = 0;
  agent.onTurn(1_000, () => {
    turns += 1;
  });
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(5);
  const stalled = vi.spyOn(Calls.prototype, 'stalled', 'get').mockReturnValue(true);
  const before = turns;
  await clock.pass(60_000);
  expect(turns).toBe(before);
  stalled.mockRestore();
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(before + 5);
});

it('while downloads hang and others wait, a short call for the end of one live file shows whether the service responds', async () => {
  const log = { taskId: TASK as TaskId, file: 'log' } as const;
  const { clock, remote } = await startJob({ tasks: [log.taskId], text: undefined });
  remote.files.set(keyText(log), Buffer.from('a line\n'));
  for (let name = 0; name < 10; name++) remote.files.set(`out/${name}`, Buffer.from('a result'));
  remote.onDownload = async (path, signal) => {
    if (path.startsWith('/out/')) await sleep(clock, 60_000, signal);
  };
  const asked: (readonly PartRequest[])[] = [];
  const read = remote.readParts.bind(remote);
  remote.readParts = async (...call) => {
    asked.push(call[1]);
    return await read(...call);
  };
  await clock.pass(20_000);
  const short = asked.filter((wanted) => wanted.some(({ offset }) => offset === BEHIND_EVERY_END));
  expect(new Set(short.map((wanted) => JSON.stringify(wanted)))).toEqual(
    new Set([JSON.stringify([{ ...log, offset: BEHIND_EVERY_END }])]),
  );
  expect(remote.held).toBe(0);
});
