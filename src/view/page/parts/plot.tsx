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
  /** Each curve has an axis of its own: a small one is no line at the bottom of a large one. */
  readonly hasOwnAxes?: boolean;
  /** Called with the place, on the common axis, of a point that was clicked. */
  readonly onPoint?: (x: number) => void;
  /** The axis of the curves begins at nought. */
  readonly fromZero?: boolean;
  readonly height?: number;
  /** How a number of the curves is written. */
  readonly format?: (value: number) => string;
}

const COLOURS = 8;
/** Axes of more curves leave no room for these: the legend has their values. */
const MAX_AXES = 4;
const DEFAULT_HEIGHT = 240;

export function Plot(props: PlotProps) {
  const { label, names, columns, hasOwnAxes, isLogarithmic = false, height = DEFAULT_HEIGHT, onPoint } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const point = useRef(onPoint);
  point.current = onPoint;
  const shape = JSON.stringify([names, hasOwnAxes, isLogarithmic, theme.value, height]);
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
  useEffect(() => {
    plot.current?.setData(columns as uPlot.AlignedData);
    // The legend has the last values before the pointer is over the plot.
    plot.current?.setLegend({ idx: Math.max(0, (columns[0]?.length ?? 0) - 1) });
  }, [columns, shape]);
  return <div class={`plot ${onPoint === undefined ? '' : 'leads'}`} ref={place} role="img" aria-label={label} />;
}

function optionsOf(props: PlotProps, element: HTMLElement): uPlot.Options {
  const { names, hasOwnAxes = false, isTime = false, isLogarithmic = false } = props;
  const { fromZero = false, height = DEFAULT_HEIGHT, format } = props;
  /** The present one of the two themes. */
  const token = (name: string) => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  const axis = {
    stroke: token('--fine'),
    grid: { stroke: token('--line'), width: 1 },
    ticks: { stroke: token('--line'), width: 1 },
  };
  const values =
    format === undefined
      ? {}
      : { values: (_: uPlot, all: number[]) => all.map((one) => (one === null ? '' : format(one))) };
  const scales = names.slice(1).map((_, index) => scaleOf(hasOwnAxes ? index : 0));
  const own = [...new Set(scales)];
  const scale = { distr: isLogarithmic ? (3 as const) : (1 as const), ...(fromZero ? { range: fromNought } : {}) };
  // Where there are several axes, each has the colour of its curve.
  const colourOf = (index: number) => (own.length < 2 ? {} : { stroke: token(`--curve-${index % COLOURS}`) });
  return {
    width: element.clientWidth,
    height,
    scales: { x: { time: isTime }, ...Object.fromEntries(own.map((one) => [one, scale])) },
    axes: [
      { ...axis, ...(isTime ? { values: hours, space: 60 } : {}) },
      ...own.slice(0, MAX_AXES).map((one, index) => ({
        ...{ ...axis, ...values, ...colourOf(index), scale: one, size: 84, side: index === 0 ? 3 : 1 },
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
            scale: scales[index - 1] ?? '',
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
