/** A mounted share: what the contract of all direct transfers does not say. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { ShareTransfer } from '../../src/direct/share.ts';
import { TransferPlace } from './transfers.ts';

it('a copy keeps to the bandwidth, over all its files together', async () => {
  const place = new TransferPlace();
  const names = ['11/a', '11/b', '11/c', '11/d'];
  for (const name of names) place.put(name, Buffer.alloc(150_000, name));
  const transfer = new ShareTransfer({ roots: { '/scratch': path.join(place.directory, 'cluster') } });
  const method = {
    serverHostname: null,
    sharedBasepath: '/scratch/jobs/501',
    protocol: 'NetworkShare',
    credentials: null,
  } as const;
  const startedMs = performance.now();
  await place.fetch(transfer, method, names, { bytesPerSecond: 1_000_000 });
  // A busy machine only makes it longer.
  expect(performance.now() - startedMs).toBeGreaterThan(590);
  expect(place.progress).toEqual([150_000, 300_000, 450_000, 600_000]);
  expect([...place.came.keys()]).toEqual(names);
});
