/** What direct transfers bring of what is there: each of them as in transfers.txt, a share as in share.txt. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import { needs } from '../support/needs.ts';
import { TransferPlace } from './place.ts';
import { byOnlyRsync, byShare, expectTransfers } from './steps.ts';

const EACH = [
  ['a mounted share', byShare, {}],
  ['an rsync that may do nothing else', byOnlyRsync, needs('rsync')],
] as const;

it('by a mounted share, each path and link brings what is written in share.txt', () =>
  expectTransfers('share.txt', byShare));

for (const [name, by, options] of EACH)
  it(`by ${name}, each request for files brings what is written in transfers.txt`, options, () =>
    expectTransfers('transfers.txt', by),
  );

for (const [name, by, options] of EACH)
  it(
    `by ${name}, a request ends with what is thrown meanwhile, when it is stopped, and at a link in the place of its directory`,
    options,
    async () => {
      const place = new TransferPlace();
      const [fetch] = await by(place);
      // rsync would find bytes that repeat in what came before the stop.
      place.put('11/large', randomBytes(8_000_000));
      const stop = new AbortController();
      const locked = () => {
        throw new JobtailError('store', 'the state is locked');
      };
      for (const [onBytes, code] of [
        [locked, 'store'],
        [() => stop.abort(), 'aborted'],
      ] as const) {
        const ended = fetch(['11/large'], { signal: stop.signal, bytesPerSecond: 1_000_000, onBytes });
        await expect(ended).rejects.toMatchObject({ code });
        expect(place.came.size).toBe(0);
      }
      const outside = path.join(place.directory, 'outside');
      fs.mkdirSync(outside);
      fs.rmSync(place.arrival, { recursive: true });
      fs.symlinkSync(outside, place.arrival);
      await expect(fetch(['11/large'])).rejects.toMatchObject({ code: 'local-io' });
      expect(fs.readdirSync(outside)).toEqual([]);
    },
  );
