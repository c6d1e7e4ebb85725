/**
 * What is noted all the time, whether a page is open or not, in bounded memory: the calls of the agent, the figures of
 * the last hours, and how the live files of each job grew in the last hour.
 */
import fs from 'node:fs';
import type { JobId } from '../../job.ts';
import type { LiveSums } from '../../store/totals.ts';
import type { Disk, Figure } from '../contract/events.ts';
import type { JobStores } from '../fleet.ts';
import type { OpenStore, ViewSettings } from '../settings.ts';

export type AgentFigure = NonNullable<Figure['agent']>;

/** What the running agent counts for the view, from one figure to the next. */
export class AgentFigures {
  #now = newCounts();

  /** A call that ended: `outcome` is `ok`, or the code of the failure. */
  call({ operation, outcome }: { readonly operation: string; readonly outcome: string }): void {
    const { calls } = this.#now;
    calls[operation] = (calls[operation] ?? 0) + 1;
    this.#ended(outcome);
  }

  signIn(outcome: string): void {
    this.#now.signIns++;
    this.#ended(outcome);
  }

  /** Since it was last taken. `waiting`: calls that wait for their turn. */
  take(waiting: number): AgentFigure {
    const taken = { waiting, ...this.#now };
    this.#now = newCounts();
    return taken;
  }

  #ended(outcome: string): void {
    const { failures } = this.#now;
    // What was stopped did not fail.
    if (outcome !== 'ok' && outcome !== 'aborted') failures[outcome] = (failures[outcome] ?? 0) + 1;
  }
}

const newCounts = () => ({
  calls: {} as Record<string, number>,
  failures: {} as Record<string, number>,
  signIns: 0,
});

const FIGURE_MS = 10_000;
/** Of four hours. */
const MAX_FIGURES = 1_440;

/** Committed bytes at a moment, in milliseconds since 1970. */
type GrowthPoint = readonly [at: number, bytes: number];

const HOUR_MS = 3_600_000;
const MAX_POINTS = 60;

/** How the live files of each job grew in the last hour: their committed bytes, in at most 60 points a job. */
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
    if (this.#points.length <= MAX_POINTS) return;
    this.#points = this.#points.filter((_, index) => index % 2 === 0 || index === this.#points.length - 1);
    this.#leastMs = Math.max(
      this.#leastMs * 2,
      ((this.#points.at(-1)?.[0] ?? 0) - (this.#points[0]?.[0] ?? 0)) / MAX_POINTS,
    );
  }
}

interface RecorderOptions {
  readonly store: OpenStore;
  readonly stores: JobStores;
  /** What the agent counted since it was last asked; null where this is not its process. */
  readonly agentFigure: () => Promise<AgentFigure | null>;
  readonly onFigure: () => void;
}

export class Recorder {
  readonly growth = new Growth();
  readonly #options: RecorderOptions;
  /** The oldest first. */
  readonly figures: Figure[] = [];
  readonly #timer: NodeJS.Timeout;
  #takenAt: number | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#takeFigure(), FIGURE_MS);
    void this.#takeFigure();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** A store that cannot be read leaves a gap; the page shows the error. */
  async #takeFigure(): Promise<void> {
    const { store, stores, agentFigure, onFigure } = this.#options;
    const agent = await agentFigure();
    // What the agent counted before this view began is of an unknown time, and has no rate.
    const counted = this.#takenAt === undefined ? agent && { ...agent, calls: {}, failures: {} } : agent;
    try {
      const live = [...store.get().totals.liveByJob().values()];
      const shown = stores.all().flatMap((one) => {
        const its = one.store.totals.liveByJob();
        return one.jobs.flatMap(({ jobId }) => pairOf(jobId, its.get(jobId)));
      });
      this.growth.add(new Map(shown), Date.now());
      const now = performance.now();
      const seconds = this.#takenAt === undefined ? 0 : (now - this.#takenAt) / 1000;
      const liveBytes = live.reduce((sum, { bytes }) => sum + bytes, 0);
      this.figures.push({ at: Date.now(), seconds, liveBytes, agent: counted });
      if (this.figures.length > MAX_FIGURES) this.figures.shift();
      this.#takenAt = now;
      onFigure();
    } catch {
      store.close();
    }
  }
}

const pairOf = <K, V>(key: K, value: V | undefined): (readonly [K, V])[] => (value === undefined ? [] : [[key, value]]);

/** Without those that cannot be asked now. */
export function disksOf({ mirrorDirectory, stateDirectory }: ViewSettings): Disk[] {
  return [...diskOf('mirror', mirrorDirectory), ...diskOf('state', stateDirectory)];
}

function diskOf(name: Disk['name'], directory: string): Disk[] {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(directory);
    return [{ name, directory, freeBytes: bavail * bsize, totalBytes: blocks * bsize }];
  } catch {
    return [];
  }
}
