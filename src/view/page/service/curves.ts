/** Figures of the agent as columns of a plot: the time in seconds, then a column for each curve. */
import type { Figure } from '../../contract/events.ts';

export interface Curves {
  readonly names: readonly string[];
  readonly columns: readonly (readonly (number | null)[])[];
}

const MINUTE_S = 60;

/** Of the mirrors together; what a rewritten file takes away is no growth. */
export function rateCurves(figures: readonly Figure[]): Curves {
  const rate = figures.map(({ liveBytes, seconds }, index) => {
    const before = figures[index - 1];
    return before === undefined || seconds === 0 ? null : Math.max(0, liveBytes - before.liveBytes) / seconds;
  });
  return { names: ['time', 'live files'], columns: [times(figures), rate] };
}

/** By operation. */
export const callCurves = (figures: readonly Figure[]): Curves =>
  curves(figures, 'calls', ({ agent, seconds }, name) => perMinute(agent?.calls[name] ?? 0, seconds));

/** By the code of the failure. */
export const failureCurves = (figures: readonly Figure[]): Curves =>
  curves(figures, 'failures', ({ agent, seconds }, name) => perMinute(agent?.failures[name] ?? 0, seconds));

const times = (figures: readonly Figure[]) => figures.map(({ at }) => at / 1000);

const perMinute = (count: number, seconds: number) => (seconds === 0 ? null : (count / seconds) * MINUTE_S);

/** A curve for each name that the figures have of a kind. */
function curves(
  figures: readonly Figure[],
  of: 'calls' | 'failures',
  value: (figure: Figure, name: string) => number | null,
): Curves {
  const names = [...new Set(figures.flatMap(({ agent }) => Object.keys(agent?.[of] ?? {})))].sort();
  return {
    names: ['time', ...names],
    columns: [times(figures), ...names.map((name) => figures.map((figure) => value(figure, name)))],
  };
}
