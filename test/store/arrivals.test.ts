/** When bytes arrived, as it is remembered: true, in order, and in bounded size. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobId } from '../../src/job.ts';
import { MAX_ARRIVALS } from '../../src/store/arrivals.ts';
import type { LiveFileRow } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_ROW } from '../support/live-place.ts';
import { newState } from '../support/new-state.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const jobId = '501' as JobId;

/** One live file of a store, as polls commit it. */
class Commits {
  readonly store = new Store({
    ...{ directory: newState(temporaryDirectory()), service: 'x', owner: true, now: Date.now },
  });
  row: LiveFileRow = { ...NEW_ROW, jobId };
  /** When each byte of each generation arrived; undefined: in no poll. */
  readonly arrived = new Map<number, (number | undefined)[]>([[1, []]]);

  constructor() {
    onTestFinished(() => this.store.close());
    this.store.jobs.watch(
      { jobId, tasks: [this.row.taskId], files: ['stdout'], results: true, settleAfterMs: null, source: 'command' },
      0,
    );
  }

  /** A poll from `begunAt` on appends bytes, after others that a kill left. */
  poll({ bytes, left = 0, generation = this.row.generation, begunAt, tookMs = 0 }: Poll): void {
    const before = this.row;
    const from = generation === before.generation ? before.position : 0;
    const grownAt = bytes > 0 ? begunAt + tookMs : before.grownAt;
    this.row = { ...before, generation, position: from + left + bytes, grownAt };
    const all = this.arrived.get(generation) ?? [];
    this.arrived.set(generation, all);
    all.length = from + left;
    for (let byte = 0; byte < bytes; byte++) all.push(begunAt + tookMs);
    this.store.transaction(() => {
      this.store.liveFiles.save(this.row);
      this.store.arrivals.add({ before, after: this.row, bytes, begunAt });
    });
  }

  /** Bytes after `length` were cut. */
  cut(length: number): void {
    this.row = { ...this.row, position: length };
    this.arrived.get(this.row.generation)?.splice(length);
    this.store.liveFiles.save(this.row);
  }

  of(generation = this.row.generation) {
    return this.store.arrivals.ofGeneration(this.row, generation);
  }
}

interface Poll {
  readonly bytes: number;
  readonly left?: number;
  readonly generation?: number;
  readonly begunAt: number;
  readonly tookMs?: number;
}

describe('the arrivals of a live file', () => {
  it('are the times of its polls, where these are five seconds apart', () => {
    const file = new Commits();
    file.poll({ bytes: 10, begunAt: 1_000 });
    file.poll({ bytes: 5, begunAt: 60_000, tookMs: 300 });
    file.poll({ bytes: 5, begunAt: 61_000, tookMs: 300 });
    file.poll({ bytes: 7, begunAt: 3_600_000 });
    expect(file.of()).toEqual([
      [0, 10, 1_000, 1_000],
      [10, 20, 60_000, 61_300],
      [20, 27, 3_600_000, 3_600_000],
    ]);
    file.poll({ bytes: 3, generation: 2, begunAt: 4_000_000 });
    expect(file.of()).toEqual([[0, 3, 4_000_000, 4_000_000]]);
    expect(file.of(1).at(-1)).toEqual([20, 27, 3_600_000, 3_600_000]);
  });

  it('never claim a time that is not true, whatever kills, cuts and rewrites there are', () => {
    const step = fc.record({
      kind: fc.constantFrom('append', 'append', 'append', 'left', 'cut', 'rewrite'),
      bytes: fc.integer({ min: 0, max: 5 }),
      pauseMs: fc.oneof(fc.integer({ min: 1, max: 9_000 }), fc.integer({ min: 1, max: 9_000_000 })),
      tookMs: fc.integer({ min: 0, max: 900 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const file = new Commits();
        let begunAt = 1_000_000;
        for (const { kind, bytes, pauseMs, tookMs } of steps) {
          begunAt += pauseMs;
          const { generation, position } = file.row;
          if (kind === 'cut') file.cut(Math.max(0, position - bytes));
          else if (kind === 'rewrite') file.poll({ bytes, generation: generation + 1, begunAt, tookMs });
          else file.poll({ bytes, left: kind === 'left' ? 3 : 0, begunAt, tookMs });
          begunAt += tookMs;
        }
        for (const [generation, arrived] of file.arrived)
          for (const [start, end, from, to] of file.of(generation))
            for (const at of arrived.slice(start, end)) {
              expect(at).toBeGreaterThanOrEqual(from);
              expect(at).toBeLessThanOrEqual(to);
            }
      }),
    );
  });

  it('stay few, however long it grows: the last ones are exact, and older ones by a share of their age', () => {
    const file = new Commits();
    const POLLS = 6_000;
    const EACH_MS = 20_000;
    file.store.transaction(() => {
      for (let poll = 1; poll <= POLLS; poll++) file.poll({ bytes: 1, begunAt: poll * EACH_MS });
    });
    const arrivals = file.of();
    expect(arrivals.length).toBeLessThanOrEqual(MAX_ARRIVALS);
    expect(arrivals[0]?.[0]).toBe(0);
    expect(arrivals.at(-1)).toEqual([POLLS - 1, POLLS, POLLS * EACH_MS, POLLS * EACH_MS]);
    for (const [, , from, to] of arrivals) expect(to - from).toBeLessThan((POLLS * EACH_MS - to) / 8 + EACH_MS);
    for (const [index, [start]] of arrivals.entries()) expect(start).toBe(arrivals[index - 1]?.[1] ?? 0);
  });

  it('of generations that are long gone are forgotten', () => {
    const file = new Commits();
    for (let generation = 1; generation <= 40; generation++)
      file.poll({ bytes: 2, generation, begunAt: generation * 10_000 });
    expect(file.of(31)).toEqual([[0, 2, 310_000, 310_000]]);
    expect(file.of(30)).toEqual([]);
  });
});
