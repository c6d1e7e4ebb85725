/** What is pushed: growth of mirrors and jobs as they change, to as many as look; and nothing where nobody does. */
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { lockDirectory } from '../../src/store/lock.ts';
import { Totals } from '../../src/store/totals.ts';
import { AgentCounts, Figures } from '../../src/view/events/figures.ts';
import { Snapshots } from '../../src/view/events/snapshots.ts';
import { until } from '../support/e2e-until.ts';
import { JOB, STDOUT, ViewPlace } from '../support/view-place.ts';

const FILE = `file=${JOB}/9001/stdout`;
describe('a mirror that grows', () => {
  it('is said to all who look, and only the last of many changes', async () => {
    const place = await ViewPlace.withJob();
    const pages = Array.from({ length: 10 }, () => place.look(FILE));
    await Promise.all(pages.map((page) => page.until('length')));
    for (let step = 0; step < 500; step++) fs.appendFileSync(place.mirrorOf(), '0123456789');
    for (const page of pages) {
      await page.until('length', ({ bytes }) => bytes === 5_000);
      expect(page.all('length').length).toBeLessThan(250);
    }
  });

  it('that is taken back is said, and one that is made later', async () => {
    const place = await ViewPlace.withJob();
    fs.appendFileSync(place.mirrorOf(), '0123456789');
    const page = place.look(FILE);
    await page.until('length', ({ bytes }) => bytes === 10);
    fs.truncateSync(place.mirrorOf(), 4);
    await page.until('length', ({ bytes }) => bytes === 4);
    fs.rmSync(place.mirrorOf('log'));
    const later = place.look(`file=${JOB}/9001/log`);
    await later.until('hello');
    fs.writeFileSync(place.mirrorOf('log'), 'there');
    await later.until('length', ({ bytes }) => bytes === 5);
    // Replaced by another file.
    fs.writeFileSync(`${place.mirrorOf('log')}.new`, 'replaced');
    fs.renameSync(`${place.mirrorOf('log')}.new`, place.mirrorOf('log'));
    await later.until('length', ({ bytes }) => bytes === 8);
    fs.appendFileSync(place.mirrorOf('log'), '!');
    await later.until('length', ({ bytes }) => bytes === 9);
  });

  it('is no failure of the state while it cannot be read, and grows again afterwards', async () => {
    const place = await ViewPlace.withJob('four');
    const page = place.look(`${FILE}&job=${JOB}`);
    await page.until('length');
    const failed = vi.spyOn(Snapshots.prototype, 'failed');
    const open = fs.openSync;
    const denied = vi.spyOn(fs, 'openSync').mockImplementation((name, ...more) => {
      if (!String(name).endsWith('/stdout.log')) return open(name, ...more);
      throw Object.assign(new Error(`EACCES: permission denied, open '${name}'`), { code: 'EACCES', syscall: 'open' });
    });
    place.commit('log', { position: 7 });
    await until('the file is looked at', () => denied.mock.results.some(({ type }) => type === 'throw'));
    await page.until('files', ({ files }) => files.some(({ bytes }) => bytes === 7));
    expect((await place.ask(`/api/lines?${STDOUT}`)).text).toContain('EACCES');
    denied.mockRestore();
    fs.appendFileSync(place.mirrorOf(), 'five');
    await page.until('length', ({ bytes }) => bytes === 8);
    expect(failed).not.toHaveBeenCalled();
    failed.mockRestore();
  });
});

describe('jobs', () => {
  it('of a store that is made anew are reported, and so is one that cannot be read', async () => {
    const place = await ViewPlace.withJob();
    const page = place.look('jobs=1');
    await page.until('jobs');
    const file = `${place.settings.stateDirectory}/agent.db`;
    for (const liveBytes of [1, 2]) {
      fs.renameSync(file, `${file}.away`);
      const stateError = await page.until('stateError', (reported) => reported !== null);
      expect(stateError?.message).toContain('there is no state');
      fs.renameSync(`${file}.away`, file);
      await page.until('stateError', (reported) => reported === null);
      // A page whose last stream reported it, such as one that was hidden meanwhile, and the fleet that it was in.
      const later = place.look('');
      expect([await later.until('stateError'), await later.until('fleet')]).toEqual([null, null]);
      expect((await place.ask(`/api/lines?${STDOUT}`)).status).toBe(200);
      place.write('stdout', 'x'.repeat(liveBytes));
      await page.until('jobs', ({ jobs }) => jobs[0]?.liveBytes === liveBytes);
    }
  });
});

it('a state of which a part cannot be read is reported once, until it can be', async () => {
  const place = await ViewPlace.withJob();
  const broken = vi.spyOn(Totals.prototype, 'liveByJob').mockImplementation(() => {
    throw new Error('database disk image is malformed');
  });
  onTestFinished(() => broken.mockRestore());
  const page = place.look('jobs=1');
  await until('many reads', () => broken.mock.calls.length > 20);
  expect(page.all('stateError').map((reported) => reported?.message)).toEqual([
    undefined,
    expect.stringContaining('malformed'),
  ]);
  broken.mockRestore();
  await page.until('stateError', (reported) => reported === null);
  await page.until('jobs');
});

describe('the service', () => {
  it('is reported with its figures as the agent counts, each of them once', async () => {
    const figures = new Figures();
    const place = await ViewPlace.serve({}, figures);
    const counts = new AgentCounts();
    for (const at of [1_000, 2_000, 3_000]) figures.add({ ...counts, bytes: at } as AgentCounts, at);
    const page = place.look('service=1');
    expect((await page.until('figures'))?.map(({ at, bytes }) => [at, bytes])).toEqual([
      [2_000, 1_000],
      [3_000, 1_000],
    ]);
    figures.add({ ...counts, bytes: 3_500 } as AgentCounts, 4_000);
    const news = await page.until('figures', (all) => all?.some(({ at }) => at === 4_000) ?? false);
    expect(news).toEqual([{ at: 4_000, bytes: 500, calls: {}, failures: {} }]);
  });

  it('fails only while an agent runs; that one starts and stops is reported, though nothing is written', async () => {
    const place = await ViewPlace.withJob();
    const error = { code: 'unreachable', message: 'connection refused', hint: null, since: 9_500 } as const;
    place.store.jobs.endRun(JOB, { polledAt: 9_000, grownAt: null, refused: 0, failures: 3, error });
    const page = place.look('');
    for (let times = 0; times < 2; times++) {
      const none = await page.until('agent', ({ running }) => !running);
      expect(none).toMatchObject({ pid: null, serviceError: null, lastPolledAt: 9_000 });
      const lock = lockDirectory(place.settings.stateDirectory);
      const agent = await page.until('agent', ({ running }) => running);
      expect(agent).toMatchObject({ pid: process.pid, serviceError: { message: error.message }, lastPolledAt: null });
      lock.release();
    }
  });
});

it('a stream that is closed reads nothing more, and gives its place to another', async () => {
  const place = await ViewPlace.withJob();
  const page = place.look('jobs=1');
  await page.until('jobs');
  const { limits, snapshots } = place.view.parts;
  for (let others = 1; others < 64; others++) limits.take('streams');
  const refused = await place.ask('/api/events?');
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
  const refresh = vi.spyOn(snapshots, 'refresh');
  onTestFinished(() => refresh.mockRestore());
  page.close();
  // It would notice with its next line: a heartbeat after 15 s.
  const takePlace = () => {
    try {
      return limits.take('streams');
    } catch {
      return undefined;
    }
  };
  await until('its place', takePlace, 5_000);
  const before = refresh.mock.calls.length;
  await sleep(400);
  expect(refresh).toHaveBeenCalledTimes(before);
});
