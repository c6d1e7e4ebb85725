/** The lines of numbers of a file as curves that grow with it. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { type LineKind, Numbers } from '../file/numbers.ts';
import { Check, IconButton } from '../parts/button.tsx';
import { Plot } from '../parts/plot.tsx';
import { risingColumn } from '../text/plotted.ts';
import { grouped } from '../text/units.ts';

interface PlotPanelProps {
  readonly content: () => ContentQuery;
  readonly kinds: readonly LineKind[];
  readonly bytes: number;
  readonly onLine: (byte: number) => void;
  readonly onClose: () => void;
}

export function PlotPanel({ content, kinds, bytes, onLine, onClose }: PlotPanelProps) {
  const chosen = useSignal(0);
  /** The column of the common axis; undefined: the one that rises. */
  const over = useSignal<number | undefined>(undefined);
  const isLogarithmic = useSignal(false);
  const kind = kinds[chosen.value];
  const numbers = useMemo(() => (kind === undefined ? undefined : new Numbers(content, kind.byte)), [kind, content]);
  useEffect(() => () => numbers?.close(), [numbers]);
  useEffect(() => void numbers?.grow(), [numbers, bytes]);
  const { names = [], columns = [], at = [], problem } = numbers?.series.value ?? {};
  const x = over.value !== undefined && over.value < names.length ? over.value : risingColumn(columns);
  const shown = names.map((_, index) => index).filter((index) => index !== x && index !== 0);
  const order = [x, ...shown];
  const shownNames = order.map((index) => printable(names[index] ?? ''));
  const drawn = order.map((index) => columns[index] ?? []);
  const show = (place: number) => {
    const row = columns[x]?.indexOf(place) ?? -1;
    if (row >= 0) onLine(at[row] ?? 0);
  };
  return (
    <section class="plot-panel" aria-label="Plot">
      <div class="plot-bar">
        <Choice
          label="Lines"
          value={chosen.value}
          names={kinds.map(({ words }) => words)}
          onChange={(value) => (chosen.value = value)}
        />
        <Choice label="over" value={x} names={names} onChange={(value) => (over.value = value)} />
        <Check value={isLogarithmic}>logarithmic</Check>
        <span class="fine" role="status">
          {kind === undefined ? 'no lines of numbers here' : (problem ?? `${grouped(columns[0]?.length ?? 0)} points`)}
        </span>
        <IconButton icon="close" label="Close the plot" onClick={onClose} />
      </div>
      {names.length > 1 && (
        <Plot
          label={`${kind?.words ?? ''}: ${shownNames.slice(1).join(', ')}`}
          names={shownNames}
          columns={drawn}
          isLogarithmic={isLogarithmic.value}
          onPoint={show}
        />
      )}
    </section>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: number;
  readonly names: readonly string[];
  readonly onChange: (index: number) => void;
}

function Choice({ label, value, names, onChange }: ChoiceProps) {
  return (
    <label class="choice">
      {label}
      <select value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {names.map((name, index) => (
          <option key={index} value={index}>
            {printable(name)}
          </option>
        ))}
      </select>
    </label>
  );
}
