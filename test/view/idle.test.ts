/** What a view costs the agent: nothing of the mirrors while nobody looks, and never one of the threads for files. */
import { createHook } from 'node:async_hooks';
import fs from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { JOB, STDOUT, ViewPlace } from '../support/view-place.ts';

const HOUR_MS = 3_600_000;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('a view that nobody looks at touches no mirror, for an hour', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout', 'clearInterval', 'clearTimeout'] });
  const place = await ViewPlace.withJob();
  const spies = (['openSync', 'readSync', 'lstatSync', 'statSync', 'readdirSync', 'watch'] as const).map((name) =>
    vi.spyOn(fs, name),
  );
  const ofMirrors = () =>
    spies.flatMap(({ mock }) => mock.calls).filter(([file]) => /mirror|proc/.test(String(file))).length;
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(ofMirrors()).toBe(0);
  vi.useRealTimers();
  await place.ask(`/api/lines?${STDOUT}`);
  expect(ofMirrors(), 'the calls are seen').toBeGreaterThan(0);
});

it('whatever is asked of it, the threads that Node.js has for files are left to the agent', async () => {
  const place = await ViewPlace.withJob('step 1\n'.repeat(200_000));
  place.addResult('/a', 'content');
  place.rewrite('log', 'x');
  const made: string[] = [];
  const hook = createHook({ init: (_, type) => void made.push(type) }).enable();
  const page = place.look(`jobs=1&job=${JOB}&file=${JOB}/9001/stdout&service=1`);
  for (const address of [
    '/',
    `/api/lines?${STDOUT}`,
    `/api/place?${STDOUT}&line=5`,
    `/api/generations?${STDOUT}`,
    `/api/search?${STDOUT}&text=1`,
    `/api/numbers?${STDOUT}&like=0`,
    `/api/raw?${STDOUT}`,
    '/api/results?job=501',
  ])
    expect((await place.ask(address)).status, address).toBe(200);
  fs.appendFileSync(place.mirrorOf(), 'step 2\n');
  await page.until('length', ({ bytes }) => bytes > 1_400_000);
  hook.disable();
  // By the thread pool of libuv: files, name resolution, compression, cryptography.
  expect(
    made.filter((type) =>
      /^FS(?!EVENTWRAP)|^FILEHANDLE|ZLIB|GETADDRINFO|^(?:RANDOMBYTES|PBKDF|SCRYPT|SIGN)/.test(type),
    ),
  ).toEqual([]);
  expect(made, 'what is made is seen').toContain('TCPWRAP');
});
