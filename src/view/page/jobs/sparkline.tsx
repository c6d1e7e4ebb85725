/** How a job grew in the last hour: bytes over time, as a small curve. */
import { bytes, counted } from '../text/units.ts';

const WIDTH = 120;
const HEIGHT = 28;

/** `growth`: bytes at each of the last minutes, the last one now. */
export function Sparkline({ growth }: { growth: readonly number[] }) {
  const grown = (growth.at(-1) ?? 0) - (growth[0] ?? 0);
  const label = `${bytes(Math.max(0, grown))} in the last ${counted(Math.max(1, growth.length - 1), 'minute')}`;
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <path class="area" d={`${curve(growth)} L${WIDTH} ${HEIGHT} L0 ${HEIGHT} Z`} />
      <path class="line" d={curve(growth)} />
    </svg>
  );
}

/** The path of the curve; what does not grow is a line at the bottom. */
export function curve(growth: readonly number[]): string {
  const [least, most] = [Math.min(...growth), Math.max(...growth)];
  const height = (value: number) => HEIGHT - 1 - (most > least ? ((value - least) / (most - least)) * (HEIGHT - 3) : 0);
  const points = growth.length > 1 ? growth : [0, 0];
  return points
    .map((value, index) => {
      const x = (index / (points.length - 1)) * WIDTH;
      return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${height(growth.length > 1 ? value : least).toFixed(1)}`;
    })
    .join(' ');
}
