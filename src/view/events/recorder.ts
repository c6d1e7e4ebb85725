/** What is noted all the time, whether somebody looks or not: how the jobs grow, and the figures since the start. */
import type { Figure } from '../contract/service.ts';
import type { OpenStore } from '../open-store.ts';
import type { ViewSettings } from '../settings.ts';
import type { AgentFigure } from './agent-figures.ts';
import { disksOf } from './disks.ts';
import { FIGURE_MS, FigureHistory } from './figures.ts';
import { Growth } from './growth.ts';

export interface RecorderOptions {
  readonly settings: ViewSettings;
  readonly store: OpenStore;
  /** What the agent counted since it was last asked; null where this is not its process. */
  readonly agentFigure: () => Promise<AgentFigure | null>;
  readonly onFigure: () => void;
}

export class Recorder {
  readonly growth = new Growth();
  readonly startedAt: number = Date.now();
  readonly #options: RecorderOptions;
  readonly #history = new FigureHistory();
  readonly #timer: NodeJS.Timeout;
  #last: Figure | undefined;
  #takenAt = performance.now();

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#takeFigure(), FIGURE_MS);
    void this.#takeFigure();
  }

  get figures(): readonly Figure[] {
    return this.#history.all;
  }

  /** The one that was taken last. */
  get lastFigure(): Figure | undefined {
    return this.#last;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** A store that cannot be read leaves a gap: whoever looks is told of it. */
  async #takeFigure(): Promise<void> {
    const { settings, store, agentFigure, onFigure } = this.#options;
    const agent = await agentFigure();
    try {
      const { totals } = store.get();
      const { watchedJobs, failingJobs } = totals.watched();
      const sums = totals.liveByJob();
      const live = [...sums.values()];
      this.growth.add(sums, Date.now());
      const now = performance.now();
      this.#last = {
        at: Date.now(),
        seconds: (now - this.#takenAt) / 1000,
        liveBytes: live.reduce((sum, { bytes }) => sum + bytes, 0),
        watchedJobs,
        failingJobs,
        failingFiles: live.reduce((sum, { failing }) => sum + failing, 0),
        freeBytes: Object.fromEntries(disksOf(settings).map(({ name, freeBytes }) => [name, freeBytes])),
        agent,
      };
      this.#takenAt = now;
      this.#history.add(this.#last);
      onFigure();
    } catch {
      store.close();
    }
  }
}
