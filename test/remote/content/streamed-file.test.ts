import { randomBytes } from 'node:crypto';
import { setImmediate as immediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StreamedFile } from '../../../src/remote/content/lifted.ts';
import { numRuns } from '../../support/property-runs.ts';

const { signal } = new AbortController();

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
      expect(file.length).toBe(Buffer.concat(sent).length);
    }),
    numRuns(50),
  );
});
