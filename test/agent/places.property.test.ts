/** The places for calls, in virtual time: callers that always have another call, over any wire, to servers of any size. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Places } from '../../src/agent/places.ts';
import { numRuns } from '../support/property-runs.ts';

interface Situation {
  readonly roundTripMs: number;
  /** What the server does for a call; it works on so many at a time, and the others wait. */
  readonly workMs: number;
  readonly cores: number;
  /** It refuses a call (429) where so many are in it already. */
  readonly refusesFrom?: number;
}

const [MIN, MAX] = [4, 17];

/** Makes so many calls. Returns how many were on their way at a time, by call, and how long all took. */
function saturate(places: Places, situation: Situation, calls: number) {
  const { roundTripMs, workMs, cores, refusesFrom = Number.POSITIVE_INFINITY } = situation;
  const freeAt = Array.from({ length: cores }, () => 0);
  const onTheirWay: { readonly beganAt: number; readonly at: number; readonly status: number }[] = [];
  const atATime: number[] = [];
  const refused: number[] = [];
  let now = 0;
  while (atATime.length < calls) {
    if (onTheirWay.length < places.among(1)) {
      const arrivesAt = now + roundTripMs / 2;
      const inServer = onTheirWay.filter(({ at }) => at - roundTripMs / 2 > arrivesAt).length;
      const isRefused = inServer >= refusesFrom;
      const core = freeAt.indexOf(Math.min(...freeAt));
      const doneAt = isRefused ? arrivesAt : Math.max(arrivesAt, freeAt[core] ?? 0) + workMs;
      if (isRefused) refused.push(atATime.length);
      else freeAt[core] = doneAt;
      onTheirWay.push({ beganAt: now, at: doneAt + roundTripMs / 2, status: isRefused ? 429 : 200 });
      atATime.push(onTheirWay.length);
      continue;
    }
    onTheirWay.sort((a, b) => a.at - b.at);
    const ended = onTheirWay.shift();
    if (ended === undefined) throw new Error('there is no place for any call');
    now = ended.at;
    places.answered({ status: ended.status, firstByteMs: now - ended.beganAt }, true);
  }
  return { atATime, refused, tookMs: now };
}

const server = { workMs: fc.integer({ min: 1, max: 400 }), cores: fc.integer({ min: 1, max: 32 }) };
const situation = fc.record({ ...server, roundTripMs: fc.integer({ min: 0, max: 600 }) });

describe('calls at a time', () => {
  it('are never fewer than set, nor more than the most', () => {
    fc.assert(
      fc.property(situation, fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 40 }), (given, min, max) => {
        const { atATime } = saturate(new Places(min, max), given, 300);
        expect(Math.max(...atATime)).toBeLessThanOrEqual(Math.max(min, max));
        expect(Math.max(...atATime)).toBeGreaterThanOrEqual(min);
      }),
      numRuns(200),
    );
  });

  it('stay as they are where the number is set, as on releases that need 1', () => {
    fc.assert(
      fc.property(situation, fc.integer({ min: 1, max: 8 }), (given, set) => {
        expect(Math.max(...saturate(new Places(set, set), given, 200).atATime)).toBe(set);
      }),
      numRuns(100),
    );
  });

  it('reach the most on a long wire, and 400 calls take 1.05 of the time of 400 at that number from the start', () => {
    fc.assert(
      fc.property(fc.integer({ min: 96, max: 600 }), (roundTripMs) => {
        const given = { roundTripMs, workMs: 1, cores: 4 };
        const { atATime, tookMs } = saturate(new Places(MIN, MAX), given, 400);
        expect(Math.max(...atATime)).toBe(MAX);
        expect(tookMs).toBeLessThanOrEqual(1.05 * saturate(new Places(MAX, MAX), given, 400).tookMs);
      }),
      numRuns(100),
    );
  });

  it('leave no more calls waiting in a server that is the bottleneck than the wire holds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 100 }), fc.integer({ min: 100, max: 400 }), (workMs, roundTripMs) => {
        const { atATime } = saturate(new Places(MIN, MAX), { roundTripMs, workMs, cores: 1 }, 2_000);
        const later = atATime.slice(1_000);
        const mean = later.reduce((sum, count) => sum + count, 0) / later.length;
        // As many wait as are on the wire or served.
        expect(mean).toBeLessThanOrEqual(Math.max(MIN, 2 * (roundTripMs / workMs + 1)) + 1);
      }),
      numRuns(100),
    );
  });

  it('fall to the least with the first refusal, and grow by one a round afterwards', () => {
    const places = new Places(MIN, MAX);
    saturate(places, { roundTripMs: 200, workMs: 1, cores: 4 }, 100);
    expect(places.among(1)).toBe(MAX);
    places.answered({ status: 429, firstByteMs: 200 }, true);
    expect(places.among(1)).toBe(MIN);
    for (let answers = 0; answers < MIN; answers += 1) places.answered({ status: 200, firstByteMs: 200 }, true);
    expect(places.among(1)).toBe(MIN + 1);
    places.lost();
    expect(places.among(1)).toBe(MIN);
  });

  it('grow less for each agent that shares the server', () => {
    const places = new Places(MIN, MAX);
    saturate(places, { roundTripMs: 200, workMs: 1, cores: 4 }, 100);
    expect([1, 2, 4, 100].map((agents) => places.among(agents))).toEqual([17, 8, 4, 4]);
  });
});
