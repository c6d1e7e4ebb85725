/** The share of the server, in virtual time: callers that always have another call, against servers of any speed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServerShare } from '../../src/agent/server-share.ts';
import { numRuns } from '../support/property-runs.ts';

interface Situation {
  /** How long the server works for each answer, one after the other and again from the beginning. */
  readonly workMs: readonly number[];
  readonly roundTripMs: number;
  readonly concurrency: number;
  readonly requestsPerMinute?: number | null;
  /** Answers that are lost: their call ends without one, after so long. */
  readonly lostEvery?: number;
}

type Load = Parameters<ServerShare['responded']>[0];

const respond = (share: ServerShare, more: Partial<Load> = {}) =>
  share.responded({ status: 200, firstByteMs: 1, workMs: 1, retryAfterMs: undefined, ...more });

interface Run {
  /** When each call began. */
  readonly begun: number[];
  readonly workedMs: number;
}

/** Makes calls as soon as they may begin, for so long; the server serves all of them at the same time. */
function saturate(situation: Situation, forMs: number, onBegin = (_: ServerShare, _now: number) => {}): Run {
  const {
    workMs,
    roundTripMs,
    concurrency,
    requestsPerMinute = null,
    lostEvery = Number.POSITIVE_INFINITY,
  } = situation;
  let now = 0;
  const share = new ServerShare({ requestsPerMinute, monotonic: () => now });
  const onTheirWay: { readonly at: number; readonly workMs: number; readonly isLost: boolean }[] = [];
  const begun: number[] = [];
  let workedMs = 0;
  for (;;) {
    const startAt = onTheirWay.length < concurrency ? Math.max(now, share.opensAt) : Number.POSITIVE_INFINITY;
    const endAt = Math.min(...onTheirWay.map(({ at }) => at));
    now = Math.min(startAt, endAt);
    if (now > forMs) return { begun, workedMs };
    if (endAt <= startAt) {
      const [ended] = onTheirWay.splice(
        onTheirWay.findIndex(({ at }) => at === endAt),
        1,
      );
      if (ended?.isLost === false) respond(share, { firstByteMs: ended.workMs, workMs: ended.workMs });
      share.ended();
      continue;
    }
    share.begun();
    const work = workMs[begun.length % workMs.length] ?? 0;
    begun.push(now);
    const isLost = begun.length % lostEvery === 0;
    if (!isLost) workedMs += work;
    onTheirWay.push({ at: now + (isLost ? 60_000 : work + roundTripMs), workMs: work, isLost });
    onBegin(share, now);
  }
}

const situation = fc.record({
  workMs: fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 6 }),
  roundTripMs: fc.integer({ min: 0, max: 400 }),
  concurrency: fc.integer({ min: 1, max: 8 }),
});
const FOR_MS = 120_000;
/** Half of the idle time at the beginning is kept as credit. */
const CREDIT_MS = 1_000;

describe('the server works for one agent', () => {
  it('half of the time at most, but for a burst and the calls that are on their way', () => {
    fc.assert(
      fc.property(situation, (given) => {
        const { workedMs } = saturate(given, FOR_MS);
        const onTheirWay = given.concurrency * Math.max(...given.workMs);
        expect(workedMs).toBeLessThanOrEqual(FOR_MS / 2 + CREDIT_MS + 2 * onTheirWay);
      }),
      numRuns(300),
    );
  });

  it('no less than that, or than one wire takes, while calls wait', () => {
    fc.assert(
      fc.property(situation, ({ workMs: [workMs = 1], roundTripMs, concurrency }) => {
        const { begun } = saturate({ workMs: [workMs], roundTripMs, concurrency }, FOR_MS);
        const byShare = FOR_MS / (2 * workMs);
        const byWire = (FOR_MS * concurrency) / (workMs + roundTripMs);
        expect(begun.length).toBeGreaterThanOrEqual(Math.floor(0.95 * Math.min(byShare, byWire)));
      }),
      numRuns(300),
    );
  });

  it.each([400, 5_000])('60 % of the time at most where each answer takes %i ms, at any number of calls', (workMs) => {
    for (const concurrency of [1, 2, 4, 8]) {
      const { workedMs } = saturate({ workMs: [workMs], roundTripMs: 0, concurrency }, 50 * workMs);
      expect(workedMs / (50 * workMs)).toBeLessThanOrEqual(0.6);
      expect(workedMs / (50 * workMs)).toBeGreaterThanOrEqual(0.48);
    }
  });

  it('without a pause after a call of 30 s beside which it answers others at once', () => {
    const workMs = [30_000, ...Array<number>(2_000).fill(50)];
    const { begun } = saturate({ workMs, roundTripMs: 0, concurrency: 2 }, 60_000);
    expect(Math.max(...begun.map((at, index) => at - (begun[index - 1] ?? 0)))).toBeLessThan(300);
  });

  it('with a pause of ten seconds at most after one response', () => {
    const share = new ServerShare({ requestsPerMinute: null, monotonic: () => 0 });
    for (const workMs of [4_000, 30_000]) respond(share, { workMs });
    expect(share.opensAt).toBe(2_000 + 10_000);
  });

  it('in turn with the other agents of a fleet', () => {
    const one = { workMs: [100], roundTripMs: 0, concurrency: 1 };
    const { workedMs } = saturate(one, FOR_MS, (share) => share.divideAmong(5));
    expect(workedMs / FOR_MS).toBeLessThan(0.1 + 2_200 / FOR_MS);
    expect(workedMs / FOR_MS).toBeGreaterThan(0.095);
  });
});

it('each agent of a fleet makes its equal part of a fixed number of calls', () => {
  const { begun } = saturate(
    { workMs: [1], roundTripMs: 0, concurrency: 4, requestsPerMinute: 60 },
    FOR_MS,
    (share, now) => share.divideAmong(now < FOR_MS / 2 ? 1 : 3),
  );
  const half = FOR_MS / 2;
  // The first call of each half costs no time.
  expect(begun.filter((at) => at < half).length).toBe(60 + 1);
  expect(begun.filter((at) => at >= half).length).toBe(20 + 1);
});

it('a server that was slow does not delay others while one call of it hangs', () => {
  const { begun } = saturate({ workMs: [10], roundTripMs: 0, concurrency: 4, lostEvery: 50 }, FOR_MS);
  // Three of four calls hang at most times, for a minute each.
  expect(begun.length).toBeGreaterThan(150);
});

const LEFT_9 = { remaining: 9, resetMs: 10_000 };

it.each<[string, number | null, number, Load['quota'][], number]>([
  ['its equal part of them, after its credit of two seconds', null, 3, [LEFT_9], 3_000 - 2_001],
  ['one a minute at least', null, 1, [{ remaining: 0, resetMs: 200_000 }], 60_000 - 2_001],
  ['one a second where a fixed limit is as strict', 60, 1, [LEFT_9], 1_000 - 50],
  ['fewer than a fixed limit allows', 60, 1, [LEFT_9, { remaining: 1, resetMs: 10_000 }], 5_000 - 50],
])('of the calls that the server reports as left, an agent makes %s', (_, requestsPerMinute, agents, quotas, inMs) => {
  const share = new ServerShare({ requestsPerMinute, monotonic: () => 10_000 });
  share.divideAmong(agents);
  if (requestsPerMinute !== null) share.begun();
  for (const quota of quotas) respond(share, { quota });
  expect(share.opensAt).toBe(10_000 + inMs);
});

describe('a pause that the server asks for', () => {
  it('holds every call until it is over, whatever is on its way, and no longer', () => {
    const asked = fc.record({
      requestsPerMinute: fc.constantFrom(null, 100_000),
      atCall: fc.integer({ min: 0, max: 50 }),
      status: fc.constantFrom(429, 503, 500),
      retryAfterMs: fc.integer({ min: 1, max: 60_000 }),
    });
    fc.assert(
      fc.property(situation, asked, (given, { requestsPerMinute, atCall, status, retryAfterMs }) => {
        let count = 0;
        let from = Number.NaN;
        const { begun } = saturate({ ...given, requestsPerMinute }, FOR_MS, (share, now) => {
          if (count++ !== atCall) return;
          respond(share, { status, firstByteMs: 0, workMs: 0, retryAfterMs });
          from = now;
        });
        expect(begun.filter((at) => at > from && at < from + retryAfterMs)).toEqual([]);
        const next = begun.find((at) => at > from);
        const longest = 2 * given.concurrency * Math.max(...given.workMs) + 10_000;
        if (Number.isNaN(from) || from + retryAfterMs + longest > FOR_MS) return;
        expect(next).toBeLessThanOrEqual(from + retryAfterMs + longest);
      }),
      numRuns(300),
    );
  });

  it('is of the agent where the server names no time, longer each time, and short again after an answer', () => {
    let now = 0;
    const share = new ServerShare({ requestsPerMinute: null, monotonic: () => now });
    // Nor does a refused call name a pause by what it reports as left.
    const refused = (status = 429) => respond(share, { status, quota: { remaining: 0, resetMs: 50_000 } });
    const pauses = Array.from({ length: 8 }, () => {
      const pauseMs = refused();
      // Those that were on their way together.
      expect(refused()).toBeUndefined();
      expect([share.pauseMs, share.opensAt - now]).toEqual([pauseMs, pauseMs]);
      now = share.opensAt;
      return pauseMs;
    });
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    respond(share);
    expect(refused(503)).toBe(500);
  });

  it('is not cut short by a shorter one, nor by other errors', () => {
    const share = new ServerShare({ requestsPerMinute: null, monotonic: () => 0 });
    const pauses = [[503, 7_000], [429, 1_000], [500], [200, 9_000]] as const;
    const found = pauses.map(([status, retryAfterMs]) => respond(share, { status, retryAfterMs }));
    expect(found).toEqual([7_000, undefined, undefined, undefined]);
    expect(share.pauseMs).toBe(7_000);
  });
});

it('a fixed limit is kept in every minute, whatever the answers take, and used up while calls wait', () => {
  fc.assert(
    fc.property(situation, fc.integer({ min: 1, max: 6_000 }), (given, requestsPerMinute) => {
      const { begun } = saturate({ ...given, workMs: [1], roundTripMs: 0, requestsPerMinute }, FOR_MS);
      for (const [index, at] of begun.entries()) {
        const inMinute = (begun.findIndex((later) => later >= at + 60_000) + begun.length + 1) % (begun.length + 1);
        // The first one of the minute, and what a late timer is made up for.
        expect(inMinute - index).toBeLessThanOrEqual(requestsPerMinute + 1 + Math.ceil(requestsPerMinute / 1_200));
        if (index > 20) break;
      }
      expect(begun.length).toBeGreaterThanOrEqual(Math.floor(2 * requestsPerMinute * 0.99));
    }),
    numRuns(100),
  );
});
