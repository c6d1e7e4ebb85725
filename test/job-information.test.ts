/** What is made of the words and times of the middleware. */
import { describe, expect, it } from 'vitest';
import { jobTimeOf, latestMsOf, phaseOf, startedEarlyMs } from '../src/job-information.ts';

describe('a job state', () => {
  it.each([
    ['Running', 'active'],
    ['WaitingForServiceAccount', 'active'],
    ['Finished', 'over'],
    ['Canceled', 'over'],
    ['Deleted', 'over'],
    ['finished', undefined],
    ['128', undefined],
    ['', undefined],
    ['constructor', undefined],
    [null, undefined],
  ])('%s means %s', (state, phase) => {
    expect(phaseOf(state)).toBe(phase);
  });
});

describe('a time', () => {
  const UTC = Date.UTC(2026, 10, 5, 6, 7, 8);
  const HOUR_MS = 3_600_000;

  it.each([
    ['2026-11-05T06:07:08Z', UTC],
    ['2026-11-05T07:07:08.1234567+01:00', UTC + 123],
    ['2026-11-05T06:07:08', null],
    ['0001-01-01T00:00:00', null],
    ['2026-99-05T06:07:08Z', null],
    ['soon', null],
    ['', null],
  ])('%s is %s', (text, ms) => {
    expect(jobTimeOf(text)).toEqual({ text, ms });
  });

  it('without a zone was at the latest when it came to the last one', () => {
    expect(latestMsOf(jobTimeOf('2026-11-05T06:07:08.5'))).toBe(UTC + 500 + 12 * HOUR_MS);
    expect(latestMsOf(jobTimeOf('2026-11-05T06:07:08Z'))).toBe(UTC);
    expect(latestMsOf(jobTimeOf('soon'))).toBeUndefined();
  });
});

it.each([
  ['2026-11-28T07:03:44Z', '2026-11-28T06:53:45Z', 599_000],
  ['2026-11-28T07:03:44', '2026-11-28T06:53:45', 599_000],
  ['2026-11-28T07:03:44Z', '2026-11-28T07:03:42Z', 0],
  ['2026-11-28T07:03:44Z', '2026-11-28T07:05:00Z', 0],
  // Another zone, or times of which only one has its zone.
  ['2026-11-28T16:03:44Z', '2026-11-28T07:03:50Z', 0],
  ['2026-11-28T07:03:44Z', '2026-11-28T06:53:45', 0],
])('submitted %s, started %s: %i ms before it', (submitted, started, earlyMs) => {
  const times = { submitTime: jobTimeOf(submitted), startTime: jobTimeOf(started) };
  expect(startedEarlyMs(times)).toBe(earlyMs);
});
