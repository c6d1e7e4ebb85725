/** When gzip is requested: by how fast responses arrive, and by nothing else. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Compression, MEASURED_BYTES, MEASUREMENTS, SLOW_RATE } from '../../../src/remote/http/compression.ts';
import { numRuns } from '../../support/property-runs.ts';

/** Bytes a second. */
const slow = fc.integer({ min: 1_000, max: SLOW_RATE - 100_000 });
const fast = fc.integer({ min: SLOW_RATE + 100_000, max: 2_000_000_000 });
const chunkBytes = fc.integer({ min: 1_000, max: 1_000_000 });

/** So many measurements at a rate, in chunks of a length. */
function bring(compression: Compression, rate: number, times: number, bytes = MEASURED_BYTES): void {
  for (let time = 0; time < times; time += 1) {
    const measure = compression.measuring();
    for (let sent = 0; sent < MEASURED_BYTES; sent += bytes) measure(bytes, (bytes / rate) * 1000);
  }
}

test('so many slow measurements in a row switch it on, and fewer do not', () => {
  fc.assert(
    fc.property(slow, fast, chunkBytes, fc.nat(MEASUREMENTS - 1), (low, high, bytes, few) => {
      const compression = new Compression(() => 0);
      bring(compression, low, few, bytes);
      bring(compression, high, 1, bytes);
      bring(compression, low, MEASUREMENTS - 1, bytes);
      expect(compression.isWanted).toBe(false);
      bring(compression, low, 1, bytes);
      expect(compression.isWanted).toBe(true);
    }),
    numRuns(1000),
  );
});

test('short responses measure nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(MEASURED_BYTES - 1), fc.nat(100_000))), (responses) => {
      const compression = new Compression(() => 0);
      for (const [bytes, ms] of responses) compression.measuring()(bytes, ms);
      expect(compression.isWanted).toBe(false);
    }),
    numRuns(1000),
  );
});

test('responses that share a wire are measured together', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 16 }), fast, slow, (places, ample, scarce) => {
      const rounds = (rate: number) => {
        const compression = new Compression(() => 0);
        const measures = Array.from({ length: places }, () => compression.measuring());
        // In each round every response brings a chunk, at its part of the rate.
        for (let round = 0; round < 200; round += 1) {
          for (const measure of measures) measure(16_384, ((16_384 * places) / rate) * 1000);
        }
        return compression.isWanted;
      };
      expect([rounds(ample * 2), rounds(scarce / 2)]).toEqual([false, true]);
    }),
    numRuns(300),
  );
});

test('after an hour one measurement decides anew', () => {
  fc.assert(
    fc.property(slow, fast, (low, high) => {
      for (const rate of [low, high]) {
        let nowMs = 5;
        const compression = new Compression(() => nowMs);
        bring(compression, low, MEASUREMENTS);
        nowMs += 60 * 60_000 - 1;
        expect(compression.isWanted).toBe(true);
        // What comes compressed measures nothing.
        bring(compression, low, MEASUREMENTS);
        nowMs += 1;
        expect(compression.isWanted).toBe(false);
        bring(compression, rate, 1);
        expect(compression.isWanted).toBe(rate === low);
      }
    }),
    numRuns(100),
  );
});
