/** A failing disk: the error names the file and a remedy, nothing wrong is written, and the next poll goes on. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileKey } from '../../../src/job.ts';
import { JOB, ModelDisk, polledPlace, STDOUT } from '../../support/engine.ts';

const NAME = keyText(STDOUT);
const CALLS = ['stat', 'read', 'write', 'truncate', 'datasync'] as const;
const CODES = { EIO: 'local-io', ENOSPC: 'disk-full', EDQUOT: 'disk-full', EROFS: 'permission' } as const;

/** Real files whose handles fail one kind of call while `failing` says so. */
class FailingDisk extends ModelDisk {
  failing: { readonly call: (typeof CALLS)[number] | 'close'; readonly code: string; readonly of?: string } | undefined;
  failed = 0;

  override beforeStep = async (step: string, file: string) => {
    const { call, code, of = '' } = this.failing ?? {};
    if (step !== call || !file.includes(of)) return;
    this.failed++;
    throw Object.assign(new Error(`${code}: ${call}`), { code, syscall: call, errno: -1 });
  };
}

const DISK_CODES = Object.keys(CODES) as (keyof typeof CODES)[];
const cases = [
  ...CALLS.map((call) => ({ call, code: 'EIO' as const })),
  ...DISK_CODES.map((code) => ({ call: 'write' as const, code })),
];

it.each(cases)(
  '$code of $call is an error that names the mirror, which becomes whole afterwards',
  async ({ call, code }) => {
    const disk = new FailingDisk();
    const { remote, engine, time, row } = polledPlace({ disk });
    const mirror = engine.mirror(STDOUT);
    const content = Buffer.from(Array.from({ length: 100 }, (_, line) => `${line} žluťoučký kůň\n`).join(''));
    remote.files.set(NAME, content.subarray(0, 1_000));
    await engine.poll();

    // What a kill left behind the position makes it cut, too.
    fs.appendFileSync(mirror, 'not of this file');
    remote.files.set(NAME, content);
    disk.failing = { call, code };
    for (let polls = 0; polls < 3; polls++, time.now += 10_000) {
      const error = (await engine.poll()).errors.get(NAME);
      expect(error).toBeInstanceOf(JobtailError);
      expect(error).toMatchObject({ code: CODES[code], hint: expect.any(String) });
      for (const part of [mirror, code]) expect(error?.message).toContain(part);
      expect(row()).toMatchObject({ generation: 1, error: { code: CODES[code] } });
      const committed = content.subarray(0, row()?.position);
      expect(fs.readFileSync(mirror).subarray(0, committed.length).equals(committed)).toBe(true);
    }
    expect(disk.failed).toBeGreaterThan(0);

    disk.failing = undefined;
    for (let polls = 0; polls < 3; polls++, time.now += 10_000) await engine.poll();
    expect(fs.readFileSync(mirror).equals(content)).toBe(true);
    expect(row()).toMatchObject({ generation: 1, error: null, position: content.length });
    expect(fs.existsSync(`${mirror}.1`)).toBe(false);
  },
);

const STDERR: LiveFileKey = { ...STDOUT, file: 'stderr' };

it('a poll keeps no other file from its commit when a mirror cannot be closed', async () => {
  const disk = new FailingDisk();
  const { remote, engine } = polledPlace({ disk, keys: [STDOUT, STDERR] });
  remote.files.set(NAME, Buffer.from('a line\n'));
  disk.failing = { call: 'close', code: 'EIO' };
  const { errors } = await engine.poll();
  expect([...errors.keys()].sort()).toEqual([STDERR, STDOUT].map(keyText));
  expect(engine.store.liveFiles.ofJob(JOB)).toMatchObject([
    { file: 'stderr', error: { code: 'local-io' } },
    { file: 'stdout', position: 7, error: { code: 'local-io' } },
  ]);
});

it('a poll mirrors the raw bytes of one file although another cannot be flushed, which is no growth of that', async () => {
  const disk = new FailingDisk();
  const { remote, engine, time } = polledPlace({ disk, keys: [STDOUT, STDERR] });
  const set = (key: LiveFileKey, text: string) => remote.files.set(keyText(key), Buffer.from(text, 'latin1'));
  set(STDOUT, 'one\n');
  set(STDERR, 'ok\n');
  await engine.poll();
  disk.failing = { call: 'datasync', code: 'EIO', of: 'stdout' };
  set(STDOUT, 'one\ntwo\n');
  set(STDERR, 'ok\n\xe9\xe9 more\n');
  for (let polls = 0; polls < 3; polls++) {
    time.now += 60_000;
    const { errors, appended } = await engine.poll();
    expect([...errors.keys()]).toEqual([NAME]);
    expect(appended).toBe(polls === 0 ? 8 : 0);
  }
  expect(engine.store.liveFiles.ofJob(JOB)).toMatchObject([
    { file: 'stderr', position: 11, error: null },
    { file: 'stdout', position: 4, error: { code: 'local-io' }, grownAt: 1_000_000 },
  ]);
  // One that cannot be flushed itself is not downloaded.
  disk.failing = { ...disk.failing, of: 'stderr' };
  set(STDERR, 'ok\n\xe9\xe9 more\nand\n\xe9\n');
  const { rawBytes } = remote;
  time.now += 60_000;
  expect([...(await engine.poll()).errors.keys()]).toEqual([keyText(STDERR)]);
  expect(remote.rawBytes).toBe(rawBytes);
});
