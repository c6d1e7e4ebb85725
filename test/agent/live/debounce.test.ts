import { describe, expect, test } from 'vitest';
import { Debounce, PERSISTS_MS } from '../../../src/agent/live/debounce.ts';
import type { LiveFile } from '../../../src/agent/live/mirror/live-file.ts';
import { LivePlace } from '../../support/live-place.ts';

async function setUp(work: (debounce: Debounce, file: LiveFile, pass: (ms: number) => void) => Promise<void>) {
  let now = 1_000_000;
  const debounce = new Debounce(() => now);
  const place = new LivePlace();
  await place.during(async (file) => {
    await file.append(Buffer.from('text'));
    await work(debounce, file, (ms) => {
      now += ms;
    });
  });
}

describe('a difference', () => {
  test('is believed at the second sight', () =>
    setUp(async (debounce, file) => {
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
      expect(debounce.hasPersisted(file, 'different')).toBe(true);
      // It stays until it is acted upon: raw bytes may be requested first.
      expect(debounce.hasPersisted(file, 'different')).toBe(true);
      debounce.clear(file, 'different');
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
    }));

  test('that may be a stale size is believed once it was seen for a while', () =>
    setUp(async (debounce, file, pass) => {
      expect(debounce.hasPersisted(file, 'shorter')).toBe(false);
      pass(PERSISTS_MS.shorter - 1);
      expect(debounce.hasPersisted(file, 'shorter')).toBe(false);
      pass(1);
      expect(debounce.hasPersisted(file, 'shorter')).toBe(true);
    }));

  test('is not believed because the file looked shorter before', () =>
    setUp(async (debounce, file, pass) => {
      expect(debounce.hasPersisted(file, 'shorter')).toBe(false);
      pass(PERSISTS_MS.shorter);
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
      expect(debounce.hasPersisted(file, 'different')).toBe(true);
    }));

  test('is forgotten when the file is seen to be the same, and when the mirror grows', () =>
    setUp(async (debounce, file) => {
      debounce.hasPersisted(file, 'different');
      debounce.clear(file, 'different');
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
      await file.append(Buffer.from('more'));
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
      expect(debounce.hasPersisted(file, 'different')).toBe(true);
    }));
});

describe('an end inside a character', () => {
  test('is long there after its time, and is no difference', () =>
    setUp(async (debounce, file, pass) => {
      expect(debounce.hasPersisted(file, 'tail')).toBe(false);
      pass(PERSISTS_MS.tail - 1);
      expect(debounce.hasPersisted(file, 'tail')).toBe(false);
      expect(debounce.hasPersisted(file, 'different')).toBe(false);
      pass(1);
      expect(debounce.hasPersisted(file, 'tail')).toBe(true);
    }));
});
