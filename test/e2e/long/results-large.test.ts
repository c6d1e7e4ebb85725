/** A result that in base64 is longer than any string can be: by SOAP in little memory, and by the direct way. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sshd } from '../../direct/sshd.ts';
import type { Program } from '../../support/e2e-program.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';

const BYTES = 2 ** 29;
const MAX_MEMORY_BYTES = 160e6;

/** 512 MiB, most of it a hole, with something to tell at both ends and in between. */
function makeLarge(file: string): string {
  const handle = fs.openSync(file, 'w');
  for (const at of [0, 123_456_789, BYTES / 2, BYTES - 1_000]) fs.writeSync(handle, `here is byte ${at}`, at);
  fs.ftruncateSync(handle, BYTES);
  fs.closeSync(handle);
  return sha256Of(file);
}

function sha256Of(file: string): string {
  const hash = createHash('sha256');
  const handle = fs.openSync(file, 'r');
  const buffer = Buffer.allocUnsafe(4 * 2 ** 20);
  for (let read = -1; read !== 0; ) {
    read = fs.readSync(handle, buffer);
    hash.update(buffer.subarray(0, read));
  }
  fs.closeSync(handle);
  return hash.digest('hex');
}

/** The most memory a process had until it ended. */
async function mostMemoryOf(program: Program): Promise<number> {
  let most = 0;
  const looking = setInterval(() => {
    try {
      const status = fs.readFileSync(`/proc/${program.pid}/status`, 'utf8');
      most = Math.max(most, Number(/^VmHWM:\s+([0-9]+) kB/m.exec(status)?.[1] ?? 0) * 1024);
    } catch {
      // It has ended.
    }
  }, 100);
  await program.ended;
  clearInterval(looking);
  return most;
}

const WITH_SSH = needs(...SSH);

describe('a result of 512 MiB', () => {
  let sshd: Sshd | undefined;
  beforeAll(async () => {
    if (!WITH_SSH.skip) sshd = await Sshd.start();
  });
  afterAll(() => sshd?.stop());

  it('comes by SOAP in less than 160 MB of memory', { timeout: 180_000 }, async (context) => {
    const e2e = await ResultsE2e.start(context, { results: { transfer: 'soap' } });
    const sha256 = makeLarge(e2e.put('large', ''));
    await e2e.place.watch('501');
    const program = e2e.start('sync', '501');
    const most = await mostMemoryOf(program);
    expect((await program.ended).code).toBe(0);
    expect(sha256Of(e2e.result('large'))).toBe(sha256);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(MAX_MEMORY_BYTES);
  });

  it('comes by the direct way', { timeout: 180_000, ...WITH_SSH }, async (context) => {
    const e2e = await ResultsE2e.start(context, {
      ...(sshd === undefined ? {} : { sshd }),
      results: { transfer: 'auto', directAboveBytes: '1 MiB' },
    });
    const sha256 = makeLarge(e2e.put('large', ''));
    e2e.put('small', 'small');
    await e2e.place.watch('501');
    const program = e2e.start('sync', '501');
    const most = await mostMemoryOf(program);
    const { code, stderr } = await program.ended;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(sha256Of(e2e.result('large'))).toBe(sha256);
    expect(most).toBeLessThan(MAX_MEMORY_BYTES);
    expect(e2e.sandbox.counters).toMatchObject({ issuedKeys: 1, openKeys: 0 });
  });
});
