/** The curve of how a job grew in the last hour. */

/** The oldest first; from the last one until now nothing changed. */
export type Growth = readonly (readonly [at: number, bytes: number])[];

export const WIDTH = 120;
export const HEIGHT = 28;
/** So much of the height is free above and below: half of a line is drawn outside of its path. */
const MARGIN = 1.5;
const HOUR_MS = 3_600_000;
/** A curve over less time would be a jump. */
const LEAST_MS = 60_000;

/** What came within the time that is shown, and when that began. */
export function within(growth: Growth, now: number): { readonly grown: number; readonly since: number } {
  const [first] = growth;
  const since = Math.min(now - LEAST_MS, Math.max(now - HOUR_MS, first?.[0] ?? now));
  return { grown: (growth.at(-1)?.[1] ?? 0) - (first?.[1] ?? 0), since };
}

/** The curve; what does not grow is a line at the bottom. */
export function curvePath(growth: Growth, now: number): string {
  const { since } = within(growth, now);
  const values = growth.map(([, bytes]) => bytes);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const y = (value: number) =>
    HEIGHT - MARGIN - (max > min ? ((value - min) / (max - min)) * (HEIGHT - 2 * MARGIN) : 0);
  const x = (at: number) => Math.min(1, Math.max(0, (at - since) / (now - since))) * WIDTH;
  const [first = [since, 0], last = first] = [growth[0], growth.at(-1)];
  const points = [[since, first[1]] as const, ...growth, [now, last[1]] as const];
  return points
    .map(([at, value], index) => `${index === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${flat(y(value))}`)
    .join(' ');
}

/** What lies below the curve. */
export function areaPath(growth: Growth, now: number): string {
  return `${curvePath(growth, now)} L${WIDTH} ${HEIGHT} L0 ${HEIGHT} Z`;
}

const flat = (height: number) => (Number.isFinite(height) ? height : HEIGHT - MARGIN).toFixed(1);
