/** Commands beside a running agent: the agent makes the calls to the job service. No other way to the service exists here. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import timers from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { answerFrom, askAgent, PendingRequest } from '../../src/cli/ask-agent.ts';
import { isNoJob } from '../../src/cli/job-service.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { SharedState } from '../../src/daemon/state.ts';
import { JobtailError } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import { WAKE_FILE } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/clock.ts';
import { startAgent } from '../support/composed-agent.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { jobOf, ModelJobService, ModelRemote } from '../support/model-remote.ts';
import { ownState } from './own-state.ts';

async function start(remote = new ModelRemote()) {
  const service = new ModelJobService();
  service.set(jobOf('501', 'Running'));
  const { agent, mirrorDirectory, store } = await startAgent(remote, { jobService: service });
  const config = await loadConfig(path.join(path.dirname(mirrorDirectory), 'config.yaml'));
  const jobsUrl = 'https://m.example.org/JobManagementWs';
  const { namespace, soapVersion, fileTransferUrl } = config.service as Extract<
    typeof config.service,
    { protocol: 'soap' }
  >;
  const soap = { ...config.service, protocol: 'soap', namespace, soapVersion, fileTransferUrl, jobsUrl } as const;
  return { agent, service, store, config: { ...config, service: soap } };
}

it('a command that is interrupted removes its request, and wakes the agent', async () => {
  const { agent, config, store } = await start();
  // Nobody answers any more.
  await agent.stop();
  const wake = path.join(config.state.directory, WAKE_FILE);
  const stop = new AbortController();
  const asked = askAgent(config, { kind: 'verify', jobId: '501' as JobId }, stop.signal);
  await until('the request', () => store.requests.open('service').length === 1);
  fs.writeFileSync(wake, 'before');
  stop.abort();
  await expect(asked).rejects.toMatchObject({ code: 'aborted' });
  expect(store.requests.open('service')).toEqual([]);
  expect(fs.readFileSync(wake, 'utf8')).not.toBe('before');
});

it('an answer for a command does not wait for downloads that have all places for long calls', async () => {
  const remote = new ModelRemote();
  let downloads = 0;
  remote.listChangedFiles = async () => Array.from({ length: 20 }, (_, at) => `/${at}.dat`);
  remote.downloadFile = (_job, _path, _sink, signal) => {
    downloads += 1;
    const stopped = new JobtailError('aborted', 'it was stopped');
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(stopped)));
  };
  const { agent, config, store } = await start(remote);
  const request = { jobId: '501' as JobId, tasks: [], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null };
  store.transaction(() => store.jobs.watch({ ...request, source: 'command' }, Date.now()));
  agent.refresh();
  await until('three downloads', () => downloads === 3);
  expect(await isNoJob(config, '999' as JobId)).toBe(true);
});

it('an agent that stops waits for the call of a request', async () => {
  const { agent, config, service } = await start();
  const answers: (() => void)[] = [];
  service.listJobs = () => new Promise((resolve) => answers.push(() => resolve([])));
  const command = new AbortController();
  const asked = askAgent(config, { kind: 'report', jobId: null }, command.signal);
  await until('the call', () => answers.length > 0);
  const ended = vi.fn();
  const stopped = agent.stop().then(ended);
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(ended).not.toHaveBeenCalled();
  for (const answer of answers) answer();
  await stopped;
  command.abort();
  await expect(asked).rejects.toMatchObject({ code: 'aborted' });
});

it('a request is served again if its answer could not be stored', async () => {
  const { config, store } = await start();
  const full = vi.spyOn(store.requests, 'answer').mockImplementationOnce(() => {
    throw new JobtailError('disk-full', 'no space left on device');
  });
  expect(await isNoJob(config, '999' as JobId)).toBe(true);
  expect(full).toHaveBeenCalledTimes(2);
});

it('a request is renewed every five seconds, made again where it is gone, and removed at the end', async () => {
  const { config, store } = await ownState();
  const clock = { now: 0 };
  for (const name of ['now', 'monotonic'] as const) {
    const spy = vi.spyOn(systemClock, name).mockImplementation(() => clock.now);
    onTestFinished(() => spy.mockRestore());
  }
  const state = new SharedState(config);
  onTestFinished(() => state.close());
  const pending = new PendingRequest(state, { kind: 'verify', jobId: '501' as JobId });
  const madeAt = (now: number) => {
    clock.now = now;
    expect(pending.renew()).toBeUndefined();
    return store.requests.open('service').map((request) => request.madeAt);
  };
  expect([0, 4_999, 5_000, 9_999, 10_000].map(madeAt)).toEqual([[0], [0], [5_000], [5_000], [10_000]]);
  store.requests.forgetUnrenewed(70_001);
  expect([70_001, 75_000, 75_001].map(madeAt)).toEqual([[70_001], [70_001], [75_001]]);
  pending.end();
  expect(store.requests.open('service')).toEqual([]);
});

it('a request is made again in a state that was replaced, where its number is that of another command', async () => {
  const { config, store } = await ownState();
  const state = new SharedState(config);
  onTestFinished(() => state.close());
  const pending = new PendingRequest(state, { kind: 'verify', jobId: '501' as JobId });
  expect(pending.renew()).toBeUndefined();
  const replaced = () => {
    fs.rmSync(config.state.directory, { recursive: true });
    expect(pending.renew()).toBeUndefined();
    const owned = openOwnStore(config, SILENT);
    onTestFinished(owned.close);
    const other = owned.store.requests.add('502' as JobId, 'verify', Date.now());
    return { ...owned, other };
  };
  expect(store.requests.open('service').map(({ requestId }) => requestId)).toEqual([1]);
  const second = replaced();
  second.store.requests.answer(second.other, 'the answer of another command');
  expect([second.other, pending.renew(), second.store.requests.open('service').length]).toEqual([1, undefined, 1]);
  const third = replaced();
  third.store.requests.add('503' as JobId, 'verify', Date.now());
  pending.end();
  expect(third.store.requests.open('service').map(({ jobId }) => jobId)).toEqual(['502', '503']);
});

it('an agent that is away for a moment is waited for again and again; its last answer counts', async () => {
  const restore = vi.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  syncBuiltinESMExports();
  onTestFinished(() => {
    restore.mockRestore();
    syncBuiltinESMExports();
  });
  const { signal } = new AbortController();
  const answerAt = async (tick: number, away: string) => {
    let [ticks, checks] = [0, 0];
    const read = () => (++ticks === tick ? 'the answer' : undefined);
    return [await answerFrom({ read, isThere: () => away[checks++] !== 'x' }, signal), ticks, checks];
  };
  expect(await answerAt(60, '.x.x.x')).toEqual(['the answer', 60, 6]);
  expect(await answerAt(30, '.xx')).toEqual(['the answer', 30, 3]);
  expect(await answerAt(31, '.xx')).toEqual([undefined, 30, 3]);
});
