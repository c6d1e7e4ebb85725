/** How the live files of each job grew in the last hour: their committed bytes, in at most 60 points a job. */
import type { JobId } from '../../job.ts';
import type { LiveSums } from '../../store/totals.ts';

/** Committed bytes at a moment, in milliseconds since 1970. */
export type GrowthPoint = readonly [at: number, bytes: number];

const HOUR_MS = 3_600_000;
const MOST_POINTS = 60;

export class Growth {
  readonly #curves = new Map<JobId, Curve>();

  /** What is so now: every ten seconds, or whatever the pace is. */
  add(sums: ReadonlyMap<JobId, LiveSums>, now: number): void {
    for (const jobId of this.#curves.keys()) if (!sums.has(jobId)) this.#curves.delete(jobId);
    for (const [jobId, { bytes }] of sums) {
      const curve = this.#curves.get(jobId) ?? new Curve();
      curve.add([now, bytes]);
      this.#curves.set(jobId, curve);
    }
  }

  /** The oldest first, `last` behind them; nothing changed since the last one, nor before the first one for an hour. */
  of(jobId: JobId, last: GrowthPoint): GrowthPoint[] {
    const points = this.#curves.get(jobId)?.points ?? [];
    const [at, bytes] = points.at(-1) ?? [Number.NEGATIVE_INFINITY];
    if (bytes !== last[1]) return [...points, [Math.max(at + 1, last[0]), last[1]]];
    return points.length > 1 && points.at(-2)?.[1] === bytes ? points.slice(0, -1) : [...points];
  }
}

/** Points of one job: where nothing changes two are enough, and when there are too many, each second one is dropped. */
class Curve {
  #points: GrowthPoint[] = [];
  #leastMs = 0;

  get points(): readonly GrowthPoint[] {
    return this.#points;
  }

  add(point: GrowthPoint): void {
    const [at, bytes] = point;
    const [before, last] = this.#points.slice(-2);
    const isFlat = last !== undefined && before?.[1] === bytes && last[1] === bytes;
    // The last point is how it is now: it moves on until it is far enough from the one before.
    if (isFlat || (before !== undefined && last !== undefined && last[0] - before[0] < this.#leastMs))
      this.#points.pop();
    this.#points.push(point);
    while ((this.#points[1]?.[0] ?? at) < at - HOUR_MS) this.#points.shift();
    if (this.#points.length <= MOST_POINTS) return;
    this.#points = this.#points.filter((_, index) => index % 2 === 0 || index === this.#points.length - 1);
    this.#leastMs = Math.max(
      this.#leastMs * 2,
      ((this.#points.at(-1)?.[0] ?? 0) - (this.#points[0]?.[0] ?? 0)) / MOST_POINTS,
    );
  }
}
