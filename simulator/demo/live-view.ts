/** The job while it is followed: a selection of the lines that arrive in the mirrors, and how far the copies are. */
import { setTimeout as sleep } from 'node:timers/promises';
import { TailedMirrors } from '../../src/cli/show/line-tail.ts';
import { cutToColumns } from '../../src/cli/show/terminal.ts';
import type { Screen } from './screen.ts';
import { growths, type Sides } from './sides.ts';

const TICK_MS = 250;

export class LiveView {
  readonly selection = new LineSelection();
  readonly #screen: Screen;
  readonly #sides: Sides;
  readonly #tail: TailedMirrors;
  #paused = false;

  constructor(screen: Screen, sides: Sides) {
    this.#screen = screen;
    this.#sides = sides;
    this.#tail = new TailedMirrors(
      (line, name) => this.selection.offer(`${cutToColumns(line.trimEnd(), screen.columns)}\n`, name),
      { mirror: { directory: sides.mirrorDirectory, keepGenerations: 0 }, jobIds: [sides.jobId] },
    );
  }

  /** No lines are shown from now on, until `resume`; what has come is not shown later. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.selection.drop();
    this.#paused = false;
  }

  /** Shows what comes until `stop` fires, and then how it stands. */
  async show(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#refresh();
      await sleep(TICK_MS, undefined, { signal: stop }).catch(() => {});
    }
    this.#tail.end();
    await this.#refresh();
    this.#screen.endProgress();
  }

  async #refresh(): Promise<void> {
    this.#tail.tick();
    const line = this.#paused ? undefined : this.selection.next();
    if (line !== undefined) this.#screen.write(line);
    this.#screen.progress(await growths(this.#sides));
  }
}

/** More lines arrive than a person can read: shows the youngest of each mirror, in turns, at a readable pace. */
class LineSelection {
  readonly #youngest = new Map<string, string>();
  /** Names in the order in which they were shown last, the longest ago first. */
  readonly #turns = new Set<string>();
  arrived = 0;
  shown = 0;

  offer(line: string, name: string): void {
    this.arrived += 1;
    this.#youngest.set(name, line);
    this.#turns.add(name);
  }

  /** What has arrived until now is not shown any more. */
  drop(): void {
    this.#youngest.clear();
  }

  /** The next line to show; undefined if none has arrived since. */
  next(): string | undefined {
    for (const name of this.#turns) {
      const line = this.#youngest.get(name);
      if (line === undefined) continue;
      this.#youngest.delete(name);
      this.#turns.delete(name);
      this.#turns.add(name);
      this.shown += 1;
      return line;
    }
    return undefined;
  }
}
