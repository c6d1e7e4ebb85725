/** What the whole daemon does with one configuration after the other, and what is left of it after its end. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { Agent } from '../../src/agent/loop/agent.ts';
import { Transfers } from '../../src/daemon/transfers.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { Notifications } from '../../src/notify/notifications.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { systemClock } from '../../src/system/clock.ts';
import { quietJob, requestOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon, seriesAt } from './whole-daemon.ts';

test('a daemon goes from one configuration to the next, and leaves nothing open at its end', async (context) => {
  const { place, sandbox, job } = await quietJob(context);
  const [viewPort, metricsPort] = [await freePort(), await freePort()];
  const sockets = path.join(place.directory, 'sockets');
  const sections = {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job)],
    view: { listen: `0.0.0.0:${viewPort}` },
    api: { directory: sockets },
    metrics: { listen: `127.0.0.1:${metricsPort}` },
    notify: [{ on: ['failed'], url: 'http://hooks.example.org/x' }],
  };
  const other = path.join(place.directory, 'other-password');
  fs.copyFileSync(sandbox.passwordFile, other);
  place.configure(sandbox, sections);
  const watched = vi.spyOn(FileWatch.prototype, 'watch');
  const revoked = vi.spyOn(Transfers.prototype, 'endAll');
  context.onTestFinished(() => void vi.restoreAllMocks());
  const { keepUp } = Transfers.prototype;
  let loops = 0;
  vi.spyOn(Transfers.prototype, 'keepUp').mockImplementation(function (this: Transfers, remote) {
    const endLoop = keepUp.call(this, remote);
    loops += 1;
    return () => {
      loops -= 1;
      return endLoop();
    };
  });
  const ends = [
    [Agent.prototype, 'stop'],
    [HttpClient.prototype, 'close'],
    [Notifications.prototype, 'replace'],
    [Notifications.prototype, 'stop'],
  ].map(([of, method]) => vi.spyOn(of as Agent, method as 'stop'));
  const [former, old] = ['601', '602'] as [JobId, JobId];
  // Retention waits so long for the clock of the service.
  const timer = systemClock.timer.bind(systemClock);
  const shortened = (delayMs: number, callback: () => void) => timer(delayMs === 10_000 ? 10 : delayMs, callback);
  vi.spyOn(systemClock, 'timer').mockImplementation(shortened);
  const { lines, said, log, store, end } = await runDaemon(place, {
    logLevel: 'trace',
    // Nothing tells of a change that is made before the file is watched.
    before: (opened) => {
      saveOutage(opened.directory, { code: 'unreachable', message: 'of an earlier process', hint: null, since: 1 });
      place.configure(
        { baseUrl: sandbox.baseUrl, username: sandbox.username, passwordFile: other },
        { ...sections, retention: { settledDays: 1, deleteFiles: true } },
      );
      const order = { results: false, settleAfterMs: null, source: 'command' } as const;
      opened.jobs.watch({ ...order, jobId: former, tasks: [], files: [] }, 1);
      opened.fleetLeases.save({ jobId: former, attempt: 1 });
      opened.jobs.watch({ ...order, jobId: old, tasks: ['9001' as TaskId], files: ['log'] }, 1);
      for (const row of opened.liveFiles.ofJob(old)) opened.liveFiles.save({ ...row, verified: 0 });
      opened.jobs.setState(old, 'settled');
      fs.mkdirSync(path.join(place.mirror, old), { recursive: true });
      fs.writeFileSync(path.join(place.mirror, old, 'of-it'), 'four');
    },
  });
  const linesOf = (msg: string) => lines.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);
  await until('the changed configuration', () => linesOf('agent ready').length === 2);
  expect(linesOf('agent ready')[0]).toMatchObject({ jobs: 1, pid: process.pid });
  expect(linesOf('configuration changed')).toMatchObject([{ changes: ['auth', 'retention'] }]);
  expect(linesOf('left the fleet, other agents keep its jobs')).toMatchObject([{ level: 'warn', jobs: 1 }]);
  expect(store.jobs.get(former)).toBeUndefined();
  expect(linesOf('connection not encrypted')[0]).toMatchObject({ level: 'warn', scope: 'notifications' });
  expect(linesOf('view not encrypted')[0]).toMatchObject({
    ...{ level: 'warn', scope: 'the view', code: 'config' },
    ...{ err: expect.stringContaining('without encryption'), hint: expect.stringContaining('127.0.0.1') },
  });

  process.emit('SIGHUP', 'SIGHUP');
  await until('the same one again', () => linesOf('agent ready').length === 3);
  expect(linesOf('configuration unchanged, certificates and secrets read again')).toHaveLength(1);
  const files = [...(watched.mock.lastCall?.[0].keys() ?? [])];
  expect([files.includes(other), files.includes(sandbox.passwordFile)]).toEqual([true, false]);
  expect([log.level, revoked.mock.calls.length, linesOf('stopped')]).toEqual(['trace', 0, []]);
  expect(outageIn(place.state)).toBeUndefined();
  const isServed = async () => (await fetch(`http://127.0.0.1:${viewPort}/`)).ok;
  await until('the view', () => isServed().catch(() => undefined));
  expect(fs.existsSync(path.join(sockets, 'read.sock'))).toBe(true);
  await seriesAt(metricsPort);
  expect(linesOf('metrics listening')).toHaveLength(3);

  await until('the removal of what is old', () => linesOf('job removed').length > 0);
  expect(linesOf('job removed')).toMatchObject([{ jobId: old, deleteFiles: true, files: 1, bytes: 4 }]);
  expect([store.jobs.get(old), fs.readdirSync(place.mirror).includes(old)]).toEqual([undefined, false]);

  await end();
  expect(ends.map(({ mock }) => mock.calls.length)).toEqual([3, 3, 2, 1]);
  expect(loops).toBe(0);
  expect([...(watched.mock.lastCall?.[0].keys() ?? [])]).toEqual([]);
  await expect(isServed()).rejects.toThrow();
  await expect(seriesAt(metricsPort)).rejects.toThrow();
  expect(fs.readdirSync(sockets)).toEqual([]);
  expect([revoked.mock.calls.length, linesOf('stopped').length]).toEqual([1, 1]);
  // A service that hangs has no more than the grace of a call that is stopped.
  expect(revoked.mock.lastCall?.[1].aborted).toBe(true);
  const kinds = said.flatMap((fields) => ['READY', 'RELOADING', 'STOPPING'].filter((kind) => kind in fields));
  expect(kinds).toEqual(['READY', 'RELOADING', 'READY', 'RELOADING', 'READY', 'STOPPING']);
});

test('a daemon whose state is removed ends, revokes its keys and names what to do', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox);
  const revoked = vi.spyOn(Transfers.prototype, 'endAll');
  context.onTestFinished(() => void revoked.mockRestore());
  const { config, running, lines, end } = await runDaemon(place, { watchdogMs: 400 });
  for (const name of fs.readdirSync(place.state))
    if (name.startsWith('agent.db')) fs.rmSync(path.join(place.state, name));
  // By itself: a daemon that is stopped meanwhile says so.
  await expect(running).rejects.toMatchObject({
    ...{
      code: 'store',
      config,
      message: `the state in ${place.state} was removed or replaced while the agent used it`,
    },
    hint: expect.stringContaining('offsets are recovered'),
  });
  await expect(end()).rejects.toThrow('was removed or replaced');
  expect(revoked).toHaveBeenCalled();
  expect(lines.some((line) => line.includes('"msg":"stopped"'))).toBe(false);
});
