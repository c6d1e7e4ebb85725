import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Mirrors } from '../../../../src/agent/live/mirror/mirror.ts';
import { JOB, STDOUT } from '../../../support/engine.ts';
import { NEW_ROW } from '../../../support/live-place.ts';
import { openFilesIn, temporaryDirectory } from '../../../support/temp-directory.ts';

let directory: string;
let mirrors: Mirrors;
beforeEach(() => {
  directory = temporaryDirectory();
  mirrors = new Mirrors(directory, false);
});

async function poll(text = ''): Promise<string> {
  const mirror = await mirrors.open(JOB, STDOUT);
  await mirror.append(Buffer.from(text));
  await mirror.close();
  expect(openFilesIn(directory)).toBe(0);
  return mirror.path;
}

const elsewhere = (file: string) => path.join(directory, `another-${path.basename(file)}`);
const copied = (place: string, target: string) => {
  fs.cpSync(place, target, { recursive: true });
  fs.rmSync(place, { recursive: true });
};

test.each([false, true])(
  'a mirror is as it was left only if inode, time and length are: on a network: %s',
  async (onNetwork) => {
    mirrors = new Mirrors(directory, onNetwork);
    const stat = vi.spyOn(fs, 'lstatSync');
    onTestFinished(() => stat.mockRestore());
    const file = await poll('text');
    expect(fs.statSync(file).mode & 0o777).toBe(0o640);
    fs.utimesSync(file, 5, 5);
    const row = { ...NEW_ROW, position: 4, inode: String(fs.statSync(file).ino), modifiedNs: '5000000000' };
    const touch = (time: number) => fs.utimesSync(file, time, time);
    const changes: Readonly<Record<string, () => void>> = {
      nothing: () => {},
      'its time': () => touch(6),
      'its time, back': () => touch(5),
      'its length': () => fs.appendFileSync(file, '.'),
      'its inode': () => {
        fs.renameSync(file, elsewhere(file));
        fs.writeFileSync(file, 'text');
      },
    };
    const asLeft: string[] = [];
    for (const [what, change] of Object.entries(changes)) {
      change();
      if (/length|inode/.test(what)) touch(5);
      stat.mockClear();
      if (await mirrors.isAsLeft(row)) asLeft.push(what);
      // There, it would block the event loop.
      expect(stat.mock.calls.length).toBe(onNetwork ? 0 : 1);
    }
    fs.rmSync(file);
    expect([asLeft, await mirrors.isAsLeft(row)]).toEqual([['nothing', 'its time, back'], false]);
  },
);

describe('a mirror', () => {
  test('has its name flushed by the next poll if the first one could not', async () => {
    const names = path.join(directory, JOB, 'live', STDOUT.taskId);
    fs.mkdirSync(names, { recursive: true });
    const open = fs.promises.open;
    let flushes = 0;
    const spy = vi.spyOn(fs.promises, 'open').mockImplementation(async (...args) => {
      if (args[0] !== names) return open(...args);
      flushes += 1;
      if (flushes === 1) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO', syscall: 'open' });
      return open(...args);
    });
    onTestFinished(() => spy.mockRestore());
    await expect(mirrors.open(JOB, STDOUT)).rejects.toThrow('EIO');
    expect(openFilesIn(directory)).toBe(0);
    await poll('text');
    expect(flushes).toBe(2);
    await poll(' and more');
    expect(flushes, 'one that has bytes has its name on the disk').toBe(2);
  });

  test.each([
    ['it, to a copy', (file: string) => file, copied],
    ['it, to itself', (file: string) => file, fs.renameSync],
    ['its directory, to a copy', (file: string) => path.dirname(file), copied],
    ['its directory, to itself', (file: string) => path.dirname(file), fs.renameSync],
    ['the directory of its job, to itself', (file: string) => path.resolve(file, '../../..'), fs.renameSync],
  ])('is not followed through a link in the place of %s', async (_, placeOf, move) => {
    const place = placeOf(await poll('text'));
    const target = elsewhere(place);
    move(place, target);
    fs.symlinkSync(target, place);
    await expect(mirrors.open(JOB, STDOUT)).rejects.toMatchObject({ code: 'local-io' });
    expect(openFilesIn(directory)).toBe(0);
  });

  test.each([
    ['pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['socket', (file: string) => once(createServer().listen(file).unref(), 'listening')],
  ])('is not opened where there is a %s: reading it would not end', async (_, put) => {
    const file = await poll();
    fs.rmSync(file);
    await put(file);
    const refusal = { message: `${file} is not a file, and is not followed or replaced` };
    await expect(mirrors.open(JOB, STDOUT)).rejects.toMatchObject(refusal);
    expect(openFilesIn(directory)).toBe(0);
  });
});
