import { randomBytes } from 'node:crypto';
import { setImmediate as immediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StreamedFile } from '../../../src/remote/content/lifted.ts';
import { numRuns } from '../../support/property-runs.ts';

const { signal } = new AbortController();
const PIECE_BYTES = 256 * 1024;

test('a sink that keeps a piece for a while sees it unchanged, in order and complete', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(200_000), { maxLength: 20 }), fc.nat(3), fc.boolean(), async (...given) => {
      const [lengths, turns, endsAlone] = given;
      const sent = lengths.map((length) => randomBytes(length));
      const taken: Buffer[] = [];
      const file = new StreamedFile(async (bytes) => {
        for (let turn = 0; turn < turns; turn += 1) await immediate();
        taken.push(Buffer.from(bytes));
      }, signal);
      file.begin();
      for (const [index, bytes] of sent.entries()) {
        file.bytes(bytes);
        if (index === sent.length - 1 && !endsAlone) file.end();
        await file.flush();
      }
      if (endsAlone) {
        file.end();
        await file.flush();
      }
      expect(Buffer.concat(taken).equals(Buffer.concat(sent))).toBe(true);
      // In pieces, because each call and each write has a cost, and each of them has bytes.
      expect(taken.slice(0, -1).every(({ length }) => length >= PIECE_BYTES)).toBe(true);
      expect(taken.every(({ length }) => length > 0 && length < PIECE_BYTES + 200_000)).toBe(true);
      expect(file.length).toBe(Buffer.concat(sent).length);
    }),
    numRuns(50),
  );
});

test('what the sink throws in the middle of a file is thrown when the next piece is there, and not before', async () => {
  const failure = new Error('of the sink');
  const file = new StreamedFile(async () => {
    throw failure;
  }, signal);
  file.begin();
  file.bytes(Buffer.alloc(PIECE_BYTES));
  await file.flush();
  for (let turn = 0; turn < 3; turn += 1) await immediate();
  file.bytes(Buffer.alloc(1));
  await file.flush();
  file.bytes(Buffer.alloc(PIECE_BYTES));
  await expect(file.flush()).rejects.toBe(failure);
  expect(file.length).toBe(0);
});

test('a sink that hangs does not outlive the signal', async () => {
  const stop = new AbortController();
  const file = new StreamedFile(() => new Promise(() => {}), stop.signal);
  file.begin();
  file.bytes(Buffer.alloc(1));
  file.end();
  const flushed = file.flush();
  stop.abort();
  await expect(flushed).rejects.toMatchObject({ code: 'aborted', message: 'the download was stopped' });
});
