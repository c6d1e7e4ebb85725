/** Numbers as curves, each with an axis of its own: a small one is no line at the bottom of a large one. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { numberText } from '../text/plotted.ts';
import { clock } from '../text/units.ts';

interface PlotProps {
  readonly label: string;
  /** The names of the curves; the first one is what they are drawn over. */
  readonly names: readonly string[];
  /** As many as names, all equally long; null where there is no number. */
  readonly columns: readonly (readonly (number | null)[])[];
  readonly isLogarithmic?: boolean;
  /** Drawn over seconds since 1970, all with one axis from 0 whose values are written so. */
  readonly overTime?: (value: number) => string;
  /** Called with the place, on the common axis, of a point that was clicked. */
  readonly onPoint?: (x: number) => void;
}

const COLOURS = 8;
/** Axes of more curves leave no room for these: the legend has their values. */
const MAX_AXES = 4;
/** Above a log on a phone, a plot is lower. */
const heightOf = ({ clientWidth }: HTMLElement) => (clientWidth < 640 ? 150 : 240);

export function Plot(props: PlotProps) {
  const { label, names, columns, isLogarithmic = false, onPoint } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const point = useRef(onPoint);
  point.current = onPoint;
  // A canvas does not follow the style sheet.
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = useSignal(dark.matches);
  useEffect(() => {
    dark.onchange = () => (isDark.value = dark.matches);
    return () => (dark.onchange = null);
  }, []);
  const shape = JSON.stringify([names, isLogarithmic, isDark.value]);
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
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: heightOf(element) });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(columns as uPlot.AlignedData);
  }, [columns, shape]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}

function optionsOf(props: PlotProps, element: HTMLElement): uPlot.Options {
  const { names, columns, isLogarithmic = false, overTime } = props;
  const textOf = overTime ?? numberText;
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
  const [over = '', ...curves] = names;
  const colourOf = (index: number) => token(`--curve-${index % COLOURS}`);
  const isCommon = overTime !== undefined;
  const scaleOf = (index: number) => `y${isCommon ? 0 : index}`;
  const scale = { distr: isLogarithmic ? (3 as const) : (1 as const), ...(isCommon ? { range: fromZero } : {}) };
  return {
    width: element.clientWidth,
    height: heightOf(element),
    scales: { x: { time: isCommon }, ...Object.fromEntries(curves.map((_, index) => [scaleOf(index), scale])) },
    axes: [
      { ...axis, ...(isCommon ? { values: hours, space: 60 } : {}) },
      ...curves.slice(0, isCommon ? 1 : MAX_AXES).map((_, index) => ({
        ...axis,
        // Where there are several axes, each has the colour of its curve.
        ...(isCommon || curves.length < 2 ? {} : { stroke: colourOf(index) }),
        values: (_: uPlot, all: number[]) => all.map((one) => (one === null ? '' : textOf(one))),
        scale: scaleOf(index),
        size: 84,
        side: index === 0 ? 3 : 1,
        grid: { ...axis.grid, show: index === 0 },
      })),
    ],
    series: [
      {
        label: over,
        ...(isCommon ? { value: (_: uPlot, at: number | null) => (at == null ? '--' : clock(at * 1000)) } : {}),
      },
      ...curves.map((label, index) => ({
        label,
        scale: scaleOf(index),
        stroke: colourOf(index),
        width: 1.5,
        spanGaps: true,
        points: { show: (columns[0]?.length ?? 0) < 3 },
        value: (_: uPlot, value: number | null) => (value == null ? '--' : textOf(value)),
      })),
    ],
    cursor: { points: { size: 7 } },
    hooks: {
      // The legend has the last values before the pointer is over the plot.
      setLegend: [
        (plot) => {
          if (plot.legend.idx == null) plot.setLegend({ idx: Math.max(0, plot.data[0].length - 1) }, false);
        },
      ],
    },
  };
}

const fromZero = (_: uPlot, __: number, max: number): [number, number] => [0, max > 0 ? max * 1.1 : 1];

/** `07:35`, as in logs; with seconds where two ticks would be equal otherwise. */
function hours(_: uPlot, all: number[]): string[] {
  const isShort = (all.at(-1) ?? 0) - (all[0] ?? 0) < 60 * all.length;
  return all.map((at) => clock(at * 1000).slice(11, isShort ? 19 : 16));
}
