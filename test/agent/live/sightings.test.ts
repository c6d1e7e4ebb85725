import { describe, expect, test } from 'vitest';
import type { LiveFile } from '../../../src/agent/live/mirror/live-file.ts';
import { SIGHTING_TIMES, Sightings } from '../../../src/agent/live/sightings.ts';
import { LivePlace } from '../../support/live-place.ts';

async function setUp(work: (sightings: Sightings, file: LiveFile, pass: (ms: number) => void) => Promise<void>) {
  let now = 1_000_000;
  const sightings = new Sightings({ now: () => now, ...SIGHTING_TIMES });
  const place = new LivePlace();
  await place.during(async (file) => {
    await file.append(Buffer.from('text'));
    await work(sightings, file, (ms) => {
      now += ms;
    });
  });
}

describe('a difference', () => {
  test('is believed at the second sight', () =>
    setUp(async (sightings, file) => {
      expect(sightings.confirm(file, 'different')).toBe(false);
      expect(sightings.confirm(file, 'different')).toBe(true);
      // It stays until it is acted upon: raw bytes may be requested first.
      expect(sightings.confirm(file, 'different')).toBe(true);
      sightings.clear(file, 'difference');
      expect(sightings.confirm(file, 'different')).toBe(false);
    }));

  test('that may be a stale size is believed once it was seen for a while', () =>
    setUp(async (sightings, file, pass) => {
      expect(sightings.confirm(file, 'shorter')).toBe(false);
      pass(SIGHTING_TIMES.staleMs - 1);
      expect(sightings.confirm(file, 'shorter')).toBe(false);
      pass(1);
      expect(sightings.confirm(file, 'shorter')).toBe(true);
    }));

  test('is forgotten when the file is seen to be the same, and when the mirror grows', () =>
    setUp(async (sightings, file) => {
      sightings.confirm(file, 'different');
      sightings.clear(file, 'difference');
      expect(sightings.confirm(file, 'different')).toBe(false);
      await file.append(Buffer.from('more'));
      expect(sightings.confirm(file, 'different')).toBe(false);
      expect(sightings.confirm(file, 'different')).toBe(true);
    }));
});

describe('an end inside a character', () => {
  test('is long there after its time, and is no difference', () =>
    setUp(async (sightings, file, pass) => {
      expect(sightings.longSeen(file, 'tail')).toBe(false);
      pass(SIGHTING_TIMES.tailMs - 1);
      expect(sightings.longSeen(file, 'tail')).toBe(false);
      expect(sightings.confirm(file, 'different')).toBe(false);
      pass(1);
      expect(sightings.longSeen(file, 'tail')).toBe(true);
    }));
});
