/** A search over all jobs, over real HTTP: what grep finds, bounded, and ended with the request. */
import { once } from 'node:events';
import fs from 'node:fs';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { IN_MEMORY, Store } from '../../src/store/store.ts';
import type { ErrorGroups, FindLine } from '../../src/view/contract/addresses.ts';
import { until } from '../support/e2e-until.ts';
import { ViewPlace } from '../support/view-place.ts';

async function placeWithJobs(): Promise<ViewPlace> {
  const place = await ViewPlace.serve();
  place.addJob();
  place.addJob('502' as JobId);
  place.write('stdout', 'begin\nCUDA out of memory\n\u001b[31merror\u001b[0m 7\n');
  place.write('stderr', 'cuda: a.b\naxb', '502' as JobId);
  return place;
}

describe('a search over all jobs', () => {
  it('is bounded in lines of a file, and in characters', async () => {
    const place = await placeWithJobs();
    place.write('stdout', `${'x'.repeat(5_000)}\n`.repeat(50));
    const [file] = await place.lines<FindLine>('/api/find?text=xx');
    expect(file).toMatchObject({ job: '501', task: '9001', file: 'stdout', matches: 50 });
    const texts = file !== undefined && 'lines' in file ? file.lines.map(({ text }) => text.length) : [];
    expect(texts).toEqual(Array(20).fill(400));
    // Of all files together, a thousand lines are shown, and all are counted.
    for (let job = 600; job < 613; job++) {
      place.addJob(`${job}` as JobId);
      for (const name of ['stdout', 'stderr', 'log', 'progress'] as const)
        place.write(name, 'a hit\n'.repeat(30), `${job}` as JobId);
    }
    const hits = (await place.lines<FindLine>('/api/find?text=hit')).flatMap((line) => ('lines' in line ? [line] : []));
    expect(hits.flatMap(({ lines }) => lines)).toHaveLength(1_000);
    expect(hits.map(({ matches }) => matches)).toEqual(Array(52).fill(30));
  });
});

it('a search over mirrors or a state that cannot be read is refused, and takes no place from the next one', async () => {
  const place = await ViewPlace.serve({ mirrorDirectory: `/${'x'.repeat(300)}` });
  const statuses = async (...names: string[]) =>
    await Promise.all(names.map(async (name) => (await place.ask(`/api/${name}`).catch(() => undefined))?.status));
  for (let times = 0; times < 9; times++) expect(await statuses('find?text=a', 'errors')).toEqual([503, 503]);
  Object.assign(place.settings, { mirrorDirectory: place.mirrors });
  fs.renameSync(`${place.settings.stateDirectory}/agent.db`, `${place.settings.stateDirectory}/away`);
  place.view.parts.store.close();
  expect(await statuses('errors', 'find?text=a')).toEqual([503, 200]);
});

it('a search leaves out a job that is removed while its files are listed', async () => {
  const place = await placeWithJobs();
  const read = fs.readdirSync;
  const listed = vi.spyOn(fs, 'readdirSync').mockImplementation(((directory: string, ...more: []) => {
    if (directory.endsWith('501/live')) fs.renameSync(`${place.mirrors}/501`, `${place.mirrors}/gone`);
    return read(directory, ...more);
  }) as typeof fs.readdirSync);
  onTestFinished(() => listed.mockRestore());
  expect(await place.lines('/api/find?text=cuda')).toMatchObject([{ job: '502', matches: 1 }, { files: 4 }]);
});

it('a file that cannot be read is named at the end of a search, which goes on with the others', async () => {
  const place = await placeWithJobs();
  const lstat = fs.lstatSync;
  const listed = vi.spyOn(fs, 'lstatSync').mockImplementation(((file: string, options: object) => {
    const stat = lstat(file, options);
    if (file.endsWith('stdout.log') && stat !== undefined) fs.unlinkSync(file);
    return stat;
  }) as typeof fs.lstatSync);
  onTestFinished(() => listed.mockRestore());
  for (const query of ['find?text=axb', 'errors']) {
    place.write('stdout', 'error: gone\n');
    place.write('stderr', 'error: axb\n', '502' as JobId);
    const lines = await place.lines<object>(`/api/${query}`);
    expect([query, JSON.stringify(lines)]).toEqual([query, expect.stringContaining('axb')]);
    expect(lines.at(-1)).toMatchObject({ cut: expect.stringMatching('no such file.*501') });
  }
});

it('an expression that never ends is ended at once when its page is gone', async () => {
  const place = await placeWithJobs();
  place.write('stdout', `${'a'.repeat(5_000)}\n`);
  const terminate = vi.spyOn(Worker.prototype, 'terminate');
  onTestFinished(() => terminate.mockRestore());
  const request = place.request(`/api/find?regex=1&text=${encodeURIComponent('(a+)+$(?!\\s)b')}`, {}, () => {});
  request.on('error', () => {});
  await once(request, 'response');
  request.destroy();
  // A thread of its own would end after 5 s of the processor.
  await until('its end', () => terminate.mock.calls.length > 0, 4_000);
});

it('errors are those of the configured patterns, cut, and those of failed jobs come first', async () => {
  const place = await ViewPlace.serve({ errorPatterns: ['^oops'] });
  for (const job of ['501', '502', '503'] as JobId[]) {
    place.addJob(job);
    place.write('stdout', `fatal: no\noops ${job === '502' ? 'y'.repeat(5_000) : job}\n`, job);
  }
  // More kinds than are shown.
  for (let kind = 0; kind < 200; kind++)
    place.write('stdout', `oops ${'x'.repeat(kind + 1)}\n`, '501' as JobId, `${9_100 + kind}` as TaskId);
  place.report('502' as JobId, { state: 'Failed' });
  place.report('503' as JobId, { state: 'Finished' });
  // It is a job of another agent of the fleet.
  const own = new Store({ directory: IN_MEMORY, service: 'x', owner: true, now: Date.now });
  onTestFinished(() => own.close());
  vi.spyOn(place.view.parts.stores, 'all').mockReturnValue([own, place.store].map((store) => ({ store, jobs: [] })));
  const [first, ...more] = await place.lines<ErrorGroups>('/api/errors');
  expect(first?.groups).toMatchObject([{ job: '502', line: 2, text: `oops ${'y'.repeat(395)}` }]);
  const { groups = [] } = more.at(-1) ?? {};
  expect([groups.length, ...groups.slice(0, 3).map(({ job, tasks }) => [job, tasks])]).toEqual([
    200,
    ['502', 1],
    ['501', 2],
    ['501', 1],
  ]);
});
