/** A disk without room: the agent waits, says so with what to do, goes on when there is room; nothing wrong on the disk. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { orderOf, submitQuietJob } from '../support/e2e-job.ts';
import { SmallDisk } from '../support/e2e-mount.ts';
import { Place, resultsOf } from '../support/e2e-place.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

/** Lines that are all different, `kib` KiB of them. */
const text = (kib: number) =>
  Buffer.from(Array.from({ length: kib * 16 }, (_, line) => `${line} žluťoučký kůň`.padEnd(58, '.')).join('\n'));

/** A job of one task whose stdout has `bytes`. */
async function startJob(place: Place, bytes: Buffer) {
  const submitted = await submitQuietJob(place);
  fs.writeFileSync(submitted.task.files.stdout, bytes);
  return submitted;
}

const isPrefix = (mirror: string, file: string) => {
  const there = fs.readFileSync(mirror);
  return there.equals(fs.readFileSync(file).subarray(0, there.length));
};

describe.concurrent('a full disk', PATIENCE, () => {
  it('under the mirrors', async (context) => {
    const place = Place.make(context);
    const disk = SmallDisk.mount(context, place.mirror, 512);
    const { sandbox, job, task, mirror } = await startJob(place, text(700));
    fs.writeFileSync(path.join(task.directory, 'out.bin'), 'a small result');
    place.configure(sandbox, { watch: [orderOf(job)], mirror: { directory: place.mirror, minFreeBytes: '100 KiB' } });
    const agent = await place.run();

    const said = await agent.says('no room left');
    expect(said).toMatchObject({ level: 'error', code: 'disk-full', hint: expect.stringContaining('free some space') });
    expect(said['err']).toContain(mirror);
    // It fills what there is, the reserve of the results too, and tries again.
    await until('another try', () => agent.log.some(({ msg }) => msg === 'still failing'));
    const { size } = fs.statSync(mirror);
    expect(size).toBeGreaterThan(450 * 1024);
    expect(isPrefix(mirror, task.files.stdout)).toBe(true);
    const [shown] = (await place.status()).jobs;
    const stdout = shown?.files.find(({ file }) => file === 'stdout');
    expect(stdout).toMatchObject({ generation: 1, error: { code: 'disk-full' } });
    expect(stdout?.bytes).toBeLessThanOrEqual(size);
    expect((await place.agent('status', job.jobId)).stdout).toContain('no room left');
    expect(fs.existsSync(path.join(resultsOf(place, job.jobId), task.specificationId, 'out.bin'))).toBe(false);

    disk.resize(4_096);
    await place.mirrored(job, 'stdout');
    await agent.says(`job ${job.jobId} ${task.taskId}/stdout works again`);
    const result = path.join(resultsOf(place, job.jobId), task.specificationId, 'out.bin');
    await until('the result', () => fs.existsSync(result));
    expect(agent.log.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(await place.agent('unwatch', job.jobId)).toMatchObject({ code: 0 });
    expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 0, stderr: '' });
    expect(fs.readdirSync(path.dirname(mirror)).filter((name) => name.startsWith('stdout'))).toEqual(['stdout.log']);
  });

  it('under the state', async (context) => {
    const place = Place.make(context);
    const disk = SmallDisk.mount(context, place.state, 1_024);
    const { sandbox, job, task, mirror } = await startJob(place, text(1));
    place.configure(sandbox, { watch: [orderOf(job)], results: { enabled: false } });

    // Without room for a first state, it waits for room.
    disk.fill();
    const first = place.start(['run']);
    const waits = await first.says('waiting for room');
    expect(waits).toMatchObject({
      level: 'error',
      code: 'disk-full',
      hint: expect.stringContaining('free some space'),
    });
    expect(waits['err']).toContain(place.state);
    disk.empty();
    await place.mirrored(job, 'stdout');

    // SQLite writes its log anew from time to time, so that the end of the room shows after some commits.
    disk.fill();
    await until('the end of the room', () => {
      fs.appendFileSync(task.files.stdout, text(1));
      return first.log.filter(({ code }) => code === 'disk-full').length > 2;
    });
    const said = await first.says(`job ${job.jobId} failed: no room left`);
    expect(said).toMatchObject({ level: 'error', hint: expect.stringContaining('free some space') });
    expect(isPrefix(mirror, task.files.stdout)).toBe(true);
    const asked = await place.agent('sync', job.jobId);
    expect(asked).toMatchObject({ code: 8, stdout: '' });
    expect(asked.stderr).toContain('no room left');

    // Neither a kill nor another start without room does any harm.
    await first.kill();
    const second = place.start(['run']);
    await until('the second start', () => second.log.some(({ code }) => code === 'disk-full'));
    expect(isPrefix(mirror, task.files.stdout)).toBe(true);
    disk.empty();
    await place.mirrored(job, 'stdout');
    expect(await place.agent('sync', job.jobId)).toMatchObject({ code: 0, stderr: '' });
    expect((await place.status()).jobs[0]?.files.map(({ generation }) => generation)).toEqual([1, 1, 1, 1]);
    expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 0, stderr: '' });
  });

  it('under a state that is removed is waited out, and said', async (context) => {
    const place = Place.make(context);
    const disk = SmallDisk.mount(context, place.state, 1_024);
    const { sandbox, job } = await startJob(place, text(1));
    place.configure(sandbox, { watch: [orderOf(job)], results: { enabled: false } });
    const agent = await place.run();
    await place.mirrored(job, 'stdout');
    disk.fill();
    // Moved, not removed: its room is not free again.
    fs.mkdirSync(path.join(place.state, 'aside'));
    for (const name of ['agent.db', 'agent.db-wal', 'agent.db-shm']) {
      fs.renameSync(path.join(place.state, name), path.join(place.state, 'aside', name));
    }
    await agent.says('beginning anew');
    expect(await agent.says('waiting for room')).toMatchObject({ level: 'error', code: 'disk-full' });
    disk.empty();
    await until('it to follow again', () => agent.log.filter(({ msg }) => msg.startsWith('following ')).length === 2);
  });

  it('in the last pass keeps the job until it is whole', async (context) => {
    const place = Place.make(context);
    const disk = SmallDisk.mount(context, place.mirror, 512);
    const { sandbox, job, task } = await startJob(place, text(700));
    place.configure(sandbox, { watch: [orderOf(job)], results: { enabled: false } });
    const agent = await place.run();
    await agent.says('no room left');
    const unwatched = await place.agent('unwatch', job.jobId);
    expect(unwatched).toMatchObject({ code: 8, stdout: '' });
    expect(unwatched.stderr).toContain('no room left');
    expect((await place.status()).jobs).toMatchObject([{ state: 'ending', error: { code: 'disk-full' } }]);
    disk.resize(4_096);
    await agent.says(`complete pass over job ${job.jobId}: ended, 4 files verified`);
    expect(fs.readFileSync(place.mirrorOf(job.jobId, task.taskId, 'stdout')).equals(text(700))).toBe(true);
  });
});

it('a mirror directory that becomes read-only is waited out', PATIENCE, async (context) => {
  const place = Place.make(context);
  const disk = SmallDisk.mount(context, place.mirror, 1_024);
  const { sandbox, job, task, mirror } = await startJob(place, text(1));
  place.configure(sandbox, { watch: [orderOf(job)], results: { enabled: false } });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await disk.makeReadOnly();
  fs.appendFileSync(task.files.stdout, 'written meanwhile\n');
  const said = await agent.says('read-only');
  expect(said).toMatchObject({ level: 'error', code: 'permission', hint: expect.stringContaining('mount it') });
  expect(said['err']).toContain(mirror);
  expect(isPrefix(mirror, task.files.stdout)).toBe(true);
  disk.makeWritable();
  await place.mirrored(job, 'stdout');
  await agent.says('works again');
});
