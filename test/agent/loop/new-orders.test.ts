/** A job that is watched already, and is ordered anew: what the newer order wants begins at once. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type LiveFileKey } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { failing, ModelRemote } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;

async function setUp() {
  const remote = new ModelRemote();
  remote.files.set(keyText(STDOUT), Buffer.from('a line\n'));
  const clock = new HeldClock();
  const started = await startAgent(remote, { clock });
  const until = (what: string, look: () => boolean) => clock.passUntil(what, look, MINUTE_MS);
  const order = ({ taskId, file }: LiveFileKey, results: boolean) =>
    started.watch({ tasks: [taskId], files: [file], results });
  const polls = async (count: number) => {
    const before = remote.calls - remote.listings;
    await until('more polls', () => remote.calls - remote.listings > before + count);
  };
  return { ...started, remote, clock, order, polls, until };
}

it('a watched job gets its results when the newer order wants them, and no more when the next one does not', async () => {
  const { remote, store, order, polls, until } = await setUp();
  const errorCode = () => store.jobs.get(JOB)?.error?.code;
  order(STDOUT, false);
  await polls(3);
  expect(remote.listings).toBe(0);
  order(STDOUT, true);
  await until('looks at the results', () => remote.listings > 1);
  remote.onListing = failing('malformed', 'it is no list');
  await until('an error of the results', () => errorCode() === 'malformed');
  order(STDOUT, false);
  await polls(8);
  const { listings } = remote;
  await polls(12);
  expect([remote.listings, errorCode()]).toEqual([listings, undefined]);
});

it('a job that another agent had has a result fetched again that was removed here meanwhile', async () => {
  const { remote, agent, store, mirrorDirectory, clock, order, until } = await setUp();
  // By its date alone, it is unchanged.
  remote.date = '2026-11-05T00:00:00Z';
  remote.files.set('out/a', Buffer.from('a result'));
  const file = path.join(mirrorDirectory, JOB, 'results', 'out', 'a.txt');
  order(STDOUT, true);
  const row = () => store.results.get(JOB, '/out/a.txt');
  await until('a proven date that spares it', () => row()?.stampProven === true && (row()?.dueAt ?? 0) < clock.now());
  const { listings } = remote;
  await until('two more syncs', () => remote.listings > listings + 2);
  const polledAt = () => store.jobs.get(JOB)?.polledAt;
  await agent.release(JOB);
  // All was committed before.
  const before = polledAt();
  await clock.pass(MINUTE_MS);
  expect([agent.jobs, polledAt()]).toEqual([0, before]);
  fs.rmSync(file);
  agent.take([JOB]);
  await until('the result', () => fs.existsSync(file));
});

it.each(['settled', 'ended'] as const)(
  'has the pass that a command asks for, though it was %s since the last look',
  async (state) => {
    const { store, order, polls, ask } = await setUp();
    order(STDOUT, false);
    await polls(1);
    // As the end of a pass does: nobody looks because of it.
    store.jobs.setState(JOB, state);
    expect(await ask('sync')).toHaveProperty('summary');
  },
);

it('a command that serves the state follows a job for as long as a command waits for it, and again for the next one', async () => {
  const clock = new HeldClock();
  const { store, agent, watch } = await startAgent(new ModelRemote(), { clock, follows: 'asked' });
  const ids = ['501', '502'] as JobId[];
  for (const jobId of ids) watch({ jobId, tasks: [], files: [...LIVE_FILE_NAMES], results: false });
  const followed: number[] = [agent.jobs];
  const after = (change: () => void) => {
    change();
    agent.refresh();
    followed.push(agent.jobs);
  };
  for (let times = 0; times < 2; times++) {
    const requests: number[] = [];
    for (const jobId of ids) after(() => requests.push(store.requests.add(jobId, 'follow', clock.now())));
    for (const requestId of requests) after(() => store.requests.remove(requestId));
  }
  expect(followed).toEqual([0, 1, 2, 1, 0, 1, 2, 1, 0]);
});

it('a job that the configuration names no longer is ended also if the state was locked when the agent began', async () => {
  const { store, watch, restart, polls, until, warnings } = await setUp();
  watch({ tasks: [STDOUT.taskId], results: false, source: 'config' });
  await polls(1);
  vi.spyOn(store.jobs, 'all').mockImplementationOnce(() => {
    throw new JobtailError('store', 'the database is locked');
  });
  await restart();
  await until('its end', () => store.jobs.get(JOB)?.state === 'ended');
  expect(warnings).toEqual([expect.stringContaining('operation failed scope="the state" code=store')]);
});
