/** Numbers as curves. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { clock } from '../text/units.ts';
import { theme } from './theme.ts';

interface PlotProps {
  readonly label: string;
  /** The names of the curves; the first one is what they are drawn over. */
  readonly names: readonly string[];
  /** As many as names, all equally long; null where there is no number. */
  readonly columns: readonly (readonly (number | null)[])[];
  readonly isTime?: boolean;
  readonly isLogarithmic?: boolean;
  /** The axis of each curve, from 0; all have the same one if left out. */
  readonly axes?: readonly number[];
  /** Called with the place, on the common axis, of a point that was clicked. */
  readonly onPoint?: (x: number) => void;
  /** The axis of the curves begins at nought. */
  readonly fromZero?: boolean;
  readonly height?: number;
  /** How a number of the curves is written. */
  readonly format?: (value: number) => string;
}

const COLOURS = 8;
const DEFAULT_HEIGHT = 240;

export function Plot(props: PlotProps) {
  const { label, names, columns, axes, isLogarithmic = false, height = DEFAULT_HEIGHT, onPoint } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const point = useRef(onPoint);
  point.current = onPoint;
  const shape = JSON.stringify([names, axes, isLogarithmic, theme.value, height]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(props, element), columns as uPlot.AlignedData, element);
    plot.current = made;
    made.over.addEventListener('click', ({ offsetX }) => {
      const x = made.data[0][made.posToIdx(offsetX)];
      // A stretch that was drawn with the pointer zooms.
      if (x != null && made.select.width === 0) point.current?.(x);
    });
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(columns as uPlot.AlignedData), [columns]);
  return <div class={`plot ${onPoint === undefined ? '' : 'leads'}`} ref={place} role="img" aria-label={label} />;
}

function optionsOf(props: PlotProps, element: HTMLElement): uPlot.Options {
  const { names, axes = [], isTime = false, isLogarithmic = false } = props;
  const { fromZero = false, height = DEFAULT_HEIGHT, format } = props;
  const styles = getComputedStyle(element);
  const token = (name: string) => styles.getPropertyValue(name).trim();
  const axis = {
    stroke: token('--fine'),
    grid: { stroke: token('--line'), width: 1 },
    ticks: { stroke: token('--line'), width: 1 },
  };
  const values =
    format === undefined
      ? {}
      : { values: (_: uPlot, all: number[]) => all.map((one) => (one === null ? '' : format(one))) };
  const own = [...new Set(names.slice(1).map((_, index) => axes[index] ?? 0))].sort();
  const scale = { distr: isLogarithmic ? (3 as const) : (1 as const), ...(fromZero ? { range: fromNought } : {}) };
  // Where there are several axes, each has the colour of its first curve.
  const colourOf = (one: number) =>
    own.length < 2 ? {} : { stroke: token(`--curve-${Math.max(0, axes.indexOf(one)) % COLOURS}`) };
  return {
    width: element.clientWidth,
    height,
    scales: { x: { time: isTime }, ...Object.fromEntries(own.map((one) => [scaleOf(one), scale])) },
    axes: [
      { ...axis, ...(isTime ? { values: hours, space: 60 } : {}) },
      ...own.map((one, index) => ({
        ...{ ...axis, ...values, ...colourOf(one), scale: scaleOf(one), size: 84, side: index === 0 ? 3 : 1 },
        grid: { ...axis.grid, show: index === 0 },
      })),
    ],
    series: names.map((name, index) =>
      index === 0
        ? {
            label: name,
            ...(isTime ? { value: (_: uPlot, at: number | null) => (at == null ? '--' : clock(at * 1000)) } : {}),
          }
        : {
            label: name,
            scale: scaleOf(axes[index - 1] ?? 0),
            stroke: token(`--curve-${(index - 1) % COLOURS}`),
            width: 1.5,
            spanGaps: true,
            points: { show: (columnsLength(props) ?? 0) < 3 },
            ...(format === undefined
              ? {}
              : { value: (_: uPlot, value: number | null) => (value == null ? '--' : format(value)) }),
          },
    ),
    cursor: { points: { size: 7 } },
  };
}

/** `07:35`, as in logs; with seconds where two ticks would be equal otherwise. */
function hours(_: uPlot, all: number[]): string[] {
  const isShort = (all.at(-1) ?? 0) - (all[0] ?? 0) < 60 * all.length;
  return all.map((at) => clock(at * 1000).slice(11, isShort ? 19 : 16));
}

const fromNought = (_: uPlot, __: number, max: number): [number, number] => [0, max > 0 ? max * 1.1 : 1];

const scaleOf = (axis: number) => `y${axis}`;

const columnsLength = ({ columns }: PlotProps) => columns[0]?.length;
