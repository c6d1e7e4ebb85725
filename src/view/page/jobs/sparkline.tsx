/** How a job grew in the last hour: bytes over time, as a small curve. */
import { bytes, duration } from '../text/units.ts';
import { areaPath, curvePath, type Growth, HEIGHT, WIDTH, within } from './growth-curve.ts';

export function Sparkline({ growth, now }: { growth: Growth; now: number }) {
  const { grown, since } = within(growth, now);
  const label = `${bytes(Math.max(0, grown))} in the last ${duration(now - since)}`;
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <path class="area" d={areaPath(growth, now)} />
      <path class="line" d={curvePath(growth, now)} />
    </svg>
  );
}
