/** The real rsync on both sides, with a script in the place of SSH. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { GROWING_DIRECTORY } from '../../src/direct/directories.ts';
import { until } from '../support/e2e-until.ts';
import { needs } from '../support/needs.ts';
import { TransferPlace } from './place.ts';
import { byRsync, expectTransfers } from './steps.ts';

describe('a transfer by rsync', needs('rsync'), () => {
  it('brings for each request for files what is written in rsync.txt', () => expectTransfers('rsync.txt', byRsync));

  it('hands over what came while the rest is on its way, and keeps what came of a file when it is stopped', async () => {
    const place = new TransferPlace();
    const names = Array.from({ length: 60 }, (_, number) => `11/f${number}`);
    for (const name of names) place.put(name, name);
    const large = randomBytes(8_000_000);
    place.put('12/large', large);
    const method = await place.lend();
    place.hostCuts(4_000_000, 1, true);
    const stop = new AbortController();
    const fetching = place.fetch(place.transfer(), method, [...names, '12/large'], { signal: stop.signal });
    // In the middle of the large one, which comes last.
    const growing = path.join(place.arrival, 'rsync', GROWING_DIRECTORY);
    const isGrowing = () =>
      place
        .files(growing)
        .some((name) => (fs.statSync(path.join(growing, name), { throwIfNoEntry: false })?.size ?? 0) > 0);
    const half = until('the small ones to be handed over', () => place.came.size === names.length && isGrowing());
    await Promise.race([fetching, half]);
    stop.abort();
    await expect(fetching).rejects.toMatchObject({ code: 'aborted' });
    expect([...place.came.keys()].sort()).toEqual([...names].sort());
    expect(place.batches.length).toBeLessThan(30);
    expect(place.files(place.arrival)).toEqual([expect.stringMatching(/partial\/large$/)]);
    await place.fetch(place.transfer(), method, ['12/large']);
    expect(place.came.get('12/large')?.equals(large)).toBe(true);
  });

  it('asks what it skipped until it is stopped', async () => {
    const place = new TransferPlace();
    const asked = path.join(place.directory, 'asked');
    fs.mkdirSync(path.join(place.cluster, '11'));
    fs.symlinkSync('nowhere', path.join(place.cluster, '11/dead'));
    place.hostIs('exec sh -c "$SSH_ORIGINAL_COMMAND"');
    place.rsyncIs(`case "$*" in *--list-only*) : > ${asked}; sleep 100;; *) exec $RSYNC "$@";; esac`);
    const stop = new AbortController();
    const fetched = place.fetch(place.transfer(), await place.lend(), ['11/dead'], { signal: stop.signal });
    fetched.catch(() => {});
    await until('the list to be asked for', () => fs.existsSync(asked));
    stop.abort();
    await expect(fetched).rejects.toMatchObject({ code: 'aborted' });
  });
});
