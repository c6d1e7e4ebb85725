/** A large file in the view of the built program, and a view that is asked as much as it can answer. */
import fs from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import type { SearchLine } from '../../../src/view/contract/addresses.ts';
import type { Events } from '../../../src/view/contract/events.ts';
import { mirroredJob } from '../../support/e2e-job.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { linkOf, View, viewedJob } from '../../support/e2e-view.ts';

const MIB = 1024 * 1024;
const BIG_BYTES = Number(process.env['JOBTAIL_VIEW_MIB'] ?? 64) * MIB;

it(`opens, counts and searches ${BIG_BYTES / MIB} MiB in memory that stays flat`, PATIENCE, async (context) => {
  const { place, job, mirror, agent } = await mirroredJob(context, Buffer.from('begin\n'));
  agent.signal('SIGTERM');
  await agent.ended;
  // Lines at both ends and in the middle, and zeros in between: a file that is large and takes little of the disk.
  const line = Buffer.from('a line with a needle in it\n');
  const opened = fs.openSync(mirror, 'r+');
  fs.ftruncateSync(opened, BIG_BYTES);
  const places = [0, BIG_BYTES / 2 - 13, BIG_BYTES - 2_000 * line.length];
  const lines = Buffer.alloc(2_000 * line.length, line);
  for (const at of places) fs.writeSync(opened, lines, 0, lines.length, at);
  fs.closeSync(opened);

  const program = place.start(['view', '--no-open']);
  const view = new View(await linkOf(program), place);
  const content = `job=${job.jobId}&task=${job.tasks[0]?.taskId}&file=stdout`;
  await view.bytes(`lines?${content}`);
  const memory = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]) / 1024;
  const before = memory();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, memory())), 20);
  onTestFinished(() => clearInterval(watching));
  // At once, before anything is counted.
  expect((await view.bytes(`lines?${content}&bytes=4096`)).toString()).toMatch(/a line with a needle in it\n$/);
  const said = await view.lines<SearchLine>(`search?${content}&text=NEEDLE`);
  expect(said.at(-1)).toEqual({ done: true, count: 6_000, version: 'g1' });
  const marks = said.find((each) => 'marks' in each);
  expect(marks).toMatchObject({ marks: expect.arrayContaining([2_000]) });
  const page = view.look(`file=${job.jobId}/${job.tasks[0]?.taskId}/stdout`);
  await page.until('length', ({ counted }: Events['length']) => counted === BIG_BYTES);
  const { byte } = JSON.parse((await view.bytes(`place?${content}&line=5999`)).toString());
  expect(byte).toBe(BIG_BYTES - line.length);
  expect((await view.bytes(`lines?${content}&from=${byte + 3}`)).equals(line)).toBe(true);
  const response = await view.ask(`raw?${content}`);
  let downloaded = 0;
  for await (const piece of response.body ?? []) downloaded += piece.length;
  expect(downloaded).toBe(BIG_BYTES);
  expect(most - before, 'MiB more, at most').toBeLessThan(150);
});

it('under load costs its own thread, and the one that polls next to nothing', PATIENCE, async (context) => {
  const { agent, view, content, task } = await viewedJob(context, {
    poll: { minIntervalSeconds: 1, maxIntervalSeconds: 5 },
  });
  fs.writeFileSync(task.files.stdout, Buffer.alloc(16 * MIB, 'some line of a log\n'));
  await until('the mirror', async () => (await view.bytes(`lines?${content}&bytes=4096`)).length > 0);
  const { size } = fs.statSync(task.files.stdout);
  await until(
    'all of it',
    async () => (await view.ask(`lines?${content}&bytes=4096`)).headers.get('view-bytes') === String(size),
  );
  /** Processor time of the thread that polls, and of all of them, in ticks of the system. */
  const ticksOf = (file: string) => {
    const fields = fs
      .readFileSync(file, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const ticks = () => ({
    main: ticksOf(`/proc/${agent.pid}/task/${agent.pid}/stat`),
    all: ticksOf(`/proc/${agent.pid}/stat`),
  });
  const begin = ticks();
  await until('two seconds of work', async () => {
    await Promise.all(Array.from({ length: 6 }, () => view.lines(`search?${content}&text=LOG`)));
    return ticks().all - begin.all > 200;
  });
  const end = ticks();
  expect((end.main - begin.main) / (end.all - begin.all), 'the share of the thread that polls').toBeLessThan(0.25);
});
