/** What was so each ten seconds since the start, in bounded memory: when it is full, each two become one. */
import type { CallFigures, Figure } from '../contract/service.ts';

export const FIGURE_MS = 10_000;
const MOST_FIGURES = 1_440;

export class FigureHistory {
  readonly #most: number;
  #figures: Figure[] = [];
  /** Figures of ten seconds that one holds by now. */
  #each = 1;
  #gathered: Figure[] = [];

  constructor(most = MOST_FIGURES) {
    this.#most = most;
  }

  /** The one that it became part of, as it stands in the history then. */
  add(figure: Figure): void {
    this.#gathered.push(figure);
    if (this.#gathered.length < this.#each) return;
    this.#figures.push(together(this.#gathered));
    this.#gathered = [];
    if (this.#figures.length < this.#most) return;
    const halved: Figure[] = [];
    for (let at = 0; at < this.#figures.length; at += 2) halved.push(together(this.#figures.slice(at, at + 2)));
    this.#figures = halved;
    this.#each *= 2;
  }

  /** The oldest first; the last ones are not put together yet. */
  get all(): readonly Figure[] {
    return [...this.#figures, ...this.#gathered];
  }
}

/** What is so is that of the last one; what is counted is added up. */
function together(figures: readonly Figure[]): Figure {
  const last = figures.at(-1);
  if (last === undefined) throw new Error('no figure');
  const agents = figures.flatMap(({ agent }) => agent ?? []);
  return {
    ...last,
    seconds: sum(figures.map(({ seconds }) => seconds)),
    agent:
      last.agent === null
        ? null
        : {
            waiting: last.agent.waiting,
            calls: merged(
              agents.map(({ calls }) => calls),
              addCalls,
            ),
            failures: merged(
              agents.map(({ failures }) => failures),
              (a, b) => a + b,
            ),
            signIns: sum(agents.map(({ signIns }) => signIns)),
            mirroredBytes: sum(agents.map(({ mirroredBytes }) => mirroredBytes)),
            resultBytes: sum(agents.map(({ resultBytes }) => resultBytes)),
          },
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

const addCalls = (a: CallFigures, b: CallFigures): CallFigures => ({
  calls: a.calls + b.calls,
  bytes: a.bytes + b.bytes,
  totalMs: a.totalMs + b.totalMs,
  longestMs: Math.max(a.longestMs, b.longestMs),
});

function merged<T>(records: readonly Readonly<Record<string, T>>[], add: (a: T, b: T) => T): Record<string, T> {
  const all = new Map<string, T>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      const before = all.get(name);
      all.set(name, before === undefined ? value : add(before, value));
    }
  }
  return Object.fromEntries(all);
}
