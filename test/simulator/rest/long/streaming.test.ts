/** Large answers over REST go out in constant memory, while they are made. */
import { open, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../../../simulator/sandbox.ts';
import { drain, until } from '../../support.ts';
import { FILE, PARTS, partsOf, STDOUT, startJob } from '../support.ts';

const MIB = 1024 * 1024;

function drainCall(sandbox: Sandbox, path: string, body: unknown, onHead?: (stop: () => void) => void) {
  const headers = { 'content-type': 'application/json' };
  return drain(`${sandbox.restUrl}/${path}`, { headers, body: JSON.stringify(body) }, onHead);
}

async function startLarge(bytes: number) {
  const place = await startJob('6.3');
  const file = await open(`${place.task.directory}/large`, 'w');
  await file.truncate(bytes);
  await file.close();
  return { ...place, body: { SubmittedJobInfoId: 501, RelativeFilePath: '/123/large', SessionCode: place.session } };
}

describe('large answers', () => {
  it('hold a whole file of 512 MiB', async () => {
    const { sandbox, body } = await startLarge(512 * MIB);
    const drained = await drainCall(sandbox, FILE, body);
    expect(drained.complete).toBe(true);
    expect(drained.bytes).toBe(Math.ceil((512 * MIB) / 3) * 4 + 2);
    expect(drained.grown).toBeLessThan(160 * MIB);
    expect(sandbox.counters.bytesSent).toBe(drained.bytes);
  });

  it.each(['6.3', '6.4'] as const)('hold a live file of 256 MiB: %s', async (release) => {
    const { sandbox, session, task } = await startJob(release);
    const mebibyte = 'x'.repeat(MIB);
    for (let count = 0; count < 256; count++) await writeFile(task.files.stdout, mebibyte, { flag: 'a' });
    const drained = await drainCall(sandbox, PARTS, partsOf(session, [9001, STDOUT, 0]));
    expect(drained.complete).toBe(true);
    expect(drained.bytes - 256 * MIB).toBeLessThan(1000);
    expect(drained.grown).toBeLessThan(160 * MIB);
  });

  it('are let go when the client goes', async () => {
    const { sandbox, body } = await startLarge(1024 * MIB);
    sandbox.setHabits({ parallelUnsafe: true });
    expect((await drainCall(sandbox, FILE, body, (stop) => stop())).complete).toBe(false);
    sandbox.faults.add({ kind: 'truncate', afterBytes: 10 });
    await until(async () => (await drainCall(sandbox, FILE, body)).bytes === 10);
  });
});
