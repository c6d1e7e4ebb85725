/** Readers that take nothing: each holds a place for two minutes at most. */
import fs from 'node:fs';
import type http from 'node:http';
import { expect, it, vi } from 'vitest';
import { STDOUT, ViewPlace } from '../../support/view-place.ts';

const PLACES = 16;
const MINUTES = { timeout: 400_000 };
const LOOKS = { timeout: 180_000, interval: 1_000 };

/** An answer of which nothing is read; resolves when it has begun. */
function begun(place: ViewPlace, address: string): Promise<http.ClientRequest> {
  return new Promise((resolve, reject) => {
    const request = place.request(address, {}, (response) => {
      response.pause();
      response.on('error', () => {});
      // What breaks off later is what is waited for.
      resolve(request.off('error', reject).on('error', () => {}));
    });
    request.on('error', reject);
  });
}

it('slow readers are broken off, and their places and files are free again', MINUTES, async () => {
  const place = await ViewPlace.withJob(Buffer.alloc(8 * 1024 * 1024, 'x\n'));
  const slow = await Promise.all(Array.from({ length: PLACES }, () => begun(place, `/api/raw?${STDOUT}`)));
  expect((await place.ask(`/api/raw?${STDOUT}`)).status).toBe(429);
  await vi.waitUntil(async () => (await place.ask(`/api/raw?${STDOUT}`)).status === 200, LOOKS);
  const isOpen = () =>
    fs.readdirSync('/proc/self/fd').some((fd) => {
      try {
        return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(place.mirrors);
      } catch {
        return false;
      }
    });
  await vi.waitUntil(() => !isOpen(), LOOKS);
  for (const request of slow) request.destroy();
  expect(place.failures).toEqual([]);
});
