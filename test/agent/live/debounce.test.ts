import { describe, expect, test } from 'vitest';
import { PERSISTS_MS, Symptoms } from '../../../src/agent/live/debounce.ts';

const LENGTH = 4;

function setUp() {
  let now = 1_000_000;
  const symptoms = new Symptoms(() => now);
  return {
    symptoms,
    /** Of a poll that is so much later. */
    hasPersisted: (kind: keyof typeof PERSISTS_MS, laterMs = 0, length = LENGTH) => {
      now += laterMs;
      return symptoms.hasPersisted(kind, length);
    },
  };
}

describe('a difference', () => {
  test('is believed at the second sight', () => {
    const { symptoms, hasPersisted } = setUp();
    expect(hasPersisted('different')).toBe(false);
    expect(hasPersisted('different')).toBe(true);
    // It stays until it is acted upon: raw bytes may be requested first.
    expect(hasPersisted('different')).toBe(true);
    symptoms.clear('different');
    expect(hasPersisted('different')).toBe(false);
  });

  test('that may be a stale size is believed once it was seen for a while', () => {
    const { hasPersisted } = setUp();
    expect(hasPersisted('shorter')).toBe(false);
    expect(hasPersisted('shorter', PERSISTS_MS.shorter - 1)).toBe(false);
    expect(hasPersisted('shorter', 1)).toBe(true);
  });

  test('is not believed because the file looked shorter before', () => {
    const { hasPersisted } = setUp();
    expect(hasPersisted('shorter')).toBe(false);
    expect(hasPersisted('different', PERSISTS_MS.shorter)).toBe(false);
    expect(hasPersisted('different')).toBe(true);
  });

  test('is forgotten when the mirror grows', () => {
    const { hasPersisted } = setUp();
    expect(hasPersisted('different')).toBe(false);
    expect(hasPersisted('different', 0, LENGTH + 1)).toBe(false);
    expect(hasPersisted('different', 0, LENGTH + 1)).toBe(true);
  });
});
