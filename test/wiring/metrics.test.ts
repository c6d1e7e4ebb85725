/** Each number of `/metrics` is one that the running agent moves: counters by what happens, gauges up and down again. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import type { JobId } from '../../src/job.ts';
import { newEvent } from '../../src/notify/events.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { quietJob, requestOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon, seriesAt } from './whole-daemon.ts';

/** Those that nothing here moves for sure, and the test that does: it names them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  build_info: 'daemon/metrics.txt',
  calls_waiting: 'daemon/metrics.txt',
  refused_entries: 'daemon/metrics.txt',
};
const REFUSED = { code: 'malformed', message: 'as a test wrote it', hint: null, since: 1 } as const;

test('each metric moves, and the gauges of trouble return', async (context) => {
  const {
    place,
    sandbox,
    job,
    task: { files },
  } = await quietJob(context);
  fs.writeFileSync(files.stdout, 'first\n'.repeat(200));
  const port = await freePort();
  const receiver = path.join(place.directory, 'received');
  const sections = {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job)],
    metrics: { listen: `127.0.0.1:${port}` },
    stallAfterMinutes: 0.01,
    notify: [
      { on: ['truncated', 'rewritten'], command: ['/bin/sh', '-c', `until test -e ${receiver}; do sleep 0.1; done`] },
    ],
  };
  place.configure(sandbox, sections);
  // As an agent that was killed while the service was away.
  fs.mkdirSync(place.state, { mode: 0o700 });
  saveOutage(place.state, { code: 'timeout', message: 'away', hint: null, since: 1 });
  let linesLost = 0;
  const { said, store } = await runDaemon(place, { logLinesLost: () => linesLost });

  const seen = new Map<string, Set<number>>();
  const look = async () => {
    const series = await seriesAt(port);
    for (const [name, value] of series) {
      if (!seen.has(name)) seen.set(name, new Set());
      seen.get(name)?.add(value);
    }
    return series;
  };
  const shows = (name: string, isSo: (value: number) => boolean) =>
    until(`${name} to be so`, async () => isSo((await look()).get(`jobtail_${name}`) ?? Number.NaN));

  const first = await look();
  for (const [name, directory] of Object.entries({ mirror: place.mirror, state: place.state })) {
    const { bavail, bsize } = fs.statfsSync(directory);
    const shown = first.get(`jobtail_disk_free_bytes{directory="${name}"}`) ?? 0;
    expect(shown / (bavail * bsize), name).toBeCloseTo(1, 1);
  }
  await place.mirrored(job, 'stdout');
  expect([outageIn(place.state), store.capabilities.get('clock')]).toEqual([undefined, '0']);
  await shows('mirrored_bytes_total', (bytes) => bytes >= 1_200);
  fs.writeFileSync(path.join(path.dirname(files.stdout), 'result.dat'), 'of the job');
  await shows('results{state="synced"}', (count) => count > 0);
  // Longer: a shorter file must be seen for seconds.
  fs.writeFileSync(files.stdout, 'other\n'.repeat(300));
  await shows('former_generations', (count) => count === 1);
  await shows('notifications_waiting', (count) => count > 0);
  fs.writeFileSync(receiver, '');
  await shows('notifications_waiting', (count) => count === 0);

  place.writeConfig(place.configText(sandbox, { ...sections, nonsense: {} }));
  await shows('reloads_total{outcome="refused"}', (count) => count > 0);
  expect(said.at(-1)?.['STATUS']).toContain('the changed configuration is refused: ');
  const another = await sandbox.submit({ tasks: [{}] });
  place.configure(sandbox, { ...sections, watch: [requestOf(job), requestOf(another)] });
  await shows('reloads_total{outcome="taken"}', (count) => count > 0);
  expect(said.find((one) => 'RELOADING' in one)).toMatchObject({ MONOTONIC_USEC: expect.stringMatching(/^\d+$/) });
  await sandbox.fault({ kind: 'http', status: 503, headers: { 'retry-after': '1' }, body: 'out of order' });
  await shows('jobs_failing', (count) => count === 2);
  await shows('server_pauses_total', (count) => count > 0);
  const [row] = store.liveFiles.ofJob(job.jobId as JobId);
  store.transaction(() => {
    if (row !== undefined) store.liveFiles.setError(row.jobId, row, REFUSED);
    const event = newEvent('test', 0, {});
    const delivery = { deliveryId: 'given-up', jobId: null, rule: 'any', event, madeAt: Date.now() };
    store.outbox.save({ ...delivery, dueAt: null, attempts: 1, lastError: REFUSED.message });
  });
  linesLost = 3;
  await shows('log_lines_lost', (count) => count === 3);
  await shows('live_files_failing', (count) => count === 1);
  await shows('notifications_given_up', (count) => count === 1);
  await sandbox.clearFaults();
  await shows('jobs_failing', (count) => count === 0);
  await shows('live_files_failing', (count) => count === 0);
  await shows('jobs_stalled', (count) => count > 0);

  const families = new Map<string, boolean>();
  for (const [name, values] of seen) {
    const family = /^jobtail_(\w+?)(?:_bucket|_sum|_count)?(?:\{|$)/.exec(name)?.[1];
    // A first look may come late: what is above 0 then has moved before it.
    const hasMoved = values.size > 1 || Math.max(...values) > 0;
    if (family !== undefined) families.set(family, (families.get(family) ?? false) || hasMoved);
  }
  const still = [...families].filter(([name, hasMoved]) => !hasMoved && !(name in ELSEWHERE)).map(([name]) => name);
  expect(still).toEqual([]);
  for (const [name, file] of Object.entries(ELSEWHERE)) {
    expect([...families.keys()]).toContain(name);
    expect(fs.readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).toContain(`jobtail_${name}`);
  }
});

test('the numbers come while the disk of the mirrors hangs, which is asked no second time, and that of the state fails once', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const port = await freePort();
  place.configure(sandbox, { metrics: { listen: `127.0.0.1:${port}` } });
  await runDaemon(place);
  const statfs = fs.promises.statfs.bind(fs.promises);
  const asked = vi.spyOn(fs.promises, 'statfs');
  let fails = false;
  asked.mockImplementation((async (at: string) => {
    if (at === place.mirror) return await new Promise(() => {});
    if (fails) throw new Error('EIO: i/o error, statfs');
    return await statfs(at);
  }) as typeof statfs);
  context.onTestFinished(() => asked.mockRestore());
  const ofState = ['jobtail_disk_free_bytes{directory="state"}'];
  for (const free of [ofState, [], ofState]) {
    fails = free.length === 0;
    const disks = [...(await seriesAt(port)).keys()].filter((name) => name.startsWith('jobtail_disk_free_bytes'));
    expect(disks).toEqual(free);
  }
  expect(asked.mock.calls.filter(([at]) => at === place.mirror)).toHaveLength(1);
});
