/** How the live files of each job grew in the last hour: their committed bytes, once a minute. */
import type { JobId } from '../../job.ts';
import type { LiveSums } from '../../store/totals.ts';

export const GROWTH_MS = 60_000;
const MOST_POINTS = 60;

export class Growth {
  readonly #points = new Map<JobId, number[]>();

  /** What is so now, each minute. */
  add(sums: ReadonlyMap<JobId, LiveSums>): void {
    for (const jobId of this.#points.keys()) if (!sums.has(jobId)) this.#points.delete(jobId);
    for (const [jobId, { bytes }] of sums) {
      const points = this.#points.get(jobId) ?? [];
      points.push(bytes);
      if (points.length > MOST_POINTS) points.shift();
      this.#points.set(jobId, points);
    }
  }

  /** The oldest first, the last one is now; without those at the beginning that are the same as the next. */
  of(jobId: JobId, bytesNow: number): number[] {
    const points = [...(this.#points.get(jobId) ?? []), bytesNow];
    const rest = points.findIndex((bytes) => bytes !== points[0]);
    return rest < 0 ? [bytesNow] : points.slice(rest - 1);
  }
}
