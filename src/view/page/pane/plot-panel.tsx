/** The lines of numbers of a file, as curves that grow with it. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { type Kind, Numbers } from '../file/numbers.ts';
import { IconButton } from '../parts/button.tsx';
import { Plot } from '../parts/plot.tsx';
import { grouped } from '../text/units.ts';

interface PlotPanelProps {
  readonly content: () => ContentQuery;
  readonly kinds: readonly Kind[];
  /** How long the content is. */
  readonly bytes: number;
  readonly onClose: () => void;
}

export function PlotPanel({ content, kinds, bytes, onClose }: PlotPanelProps) {
  const chosen = useSignal(0);
  const over = useSignal(0);
  const isLogarithmic = useSignal(false);
  const kind = kinds[chosen.value];
  const numbers = useMemo(() => (kind === undefined ? undefined : new Numbers(content, kind.byte)), [kind, content]);
  useEffect(() => () => numbers?.close(), [numbers]);
  useEffect(() => void numbers?.grow(), [numbers, bytes]);
  const { names = [], columns = [], problem } = numbers?.series.value ?? {};
  const x = over.value < names.length ? over.value : 0;
  const shown = names.map((_, index) => index).filter((index) => index !== x && index !== 0);
  const order = [x, ...shown];
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
        <label class="check">
          <input
            type="checkbox"
            checked={isLogarithmic.value}
            onChange={() => (isLogarithmic.value = !isLogarithmic.value)}
          />
          logarithmic
        </label>
        <span class="fine" role="status">
          {kind === undefined ? 'no lines of numbers here' : (problem ?? `${grouped(columns[0]?.length ?? 0)} points`)}
        </span>
        <IconButton icon="close" label="Close the plot" onClick={onClose} />
      </div>
      {names.length > 1 && (
        <Plot
          label={`${kind?.words ?? ''}: ${shown.map((index) => names[index]).join(', ')}`}
          names={order.map((index) => printable(names[index] ?? ''))}
          columns={sortedOver(order.map((index) => columns[index] ?? []))}
          isLogarithmic={isLogarithmic.value}
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

/** Curves go from left to right; what has no place on the way is left out. */
function sortedOver(columns: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const [x = []] = columns;
  const rows = x.map((_, index) => index).filter((index) => x[index] !== null);
  const isSorted = rows.every((row, index) => index === 0 || (x[row] ?? 0) >= (x[rows[index - 1] ?? 0] ?? 0));
  if (!isSorted) rows.sort((a, b) => (x[a] ?? 0) - (x[b] ?? 0));
  return columns.map((column) => rows.map((row) => column[row] ?? null));
}
