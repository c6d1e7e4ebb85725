/** The heads of a table that is sorted, and what narrows it down: the states with their counts. */
import { GROUPS, type Group } from '../jobs/list.ts';
import { grouped } from '../text/units.ts';
import { type Column, clicked, type Sort } from './sort.ts';

interface HeadsProps<Name extends string> {
  /** Of the classes: `job` for `job-cells`, `job-state`. */
  readonly kind: string;
  readonly columns: Readonly<Record<Name, Pick<Column<never>, 'label' | 'isDown'>>>;
  readonly sort: Sort<Name>;
  readonly onSort: (sort: Sort<Name>) => void;
}

export function Heads<Name extends string>({ kind, columns, sort, onSort }: HeadsProps<Name>) {
  const direction = sort.isDown ? 'descending' : 'ascending';
  return (
    <thead>
      <tr class={`heads ${kind}-cells`}>
        {(Object.keys(columns) as Name[]).map((name) => (
          <th key={name} class={`${kind}-${name}`} scope="col" aria-sort={sort.by === name ? direction : undefined}>
            <button type="button" title="Sort" onClick={() => onSort(clicked(columns, sort, name))}>
              {columns[name].label}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface ChipsProps {
  readonly counts: ReadonlyMap<Group, number>;
  readonly chosen: Group | undefined;
  readonly onChoose: (group: Group | undefined) => void;
}

/** A click shows what is in one state, the next one everything. */
export function Chips({ counts, chosen, onChoose }: ChipsProps) {
  return (
    <fieldset class="chips" aria-label="States">
      {GROUPS.map(([name, label]) => {
        const count = counts.get(name) ?? 0;
        const isPressed = chosen === name;
        return (
          (count > 0 || isPressed) && (
            <button
              key={name}
              type="button"
              class={`chip ${name}`}
              aria-pressed={isPressed}
              onClick={() => onChoose(isPressed ? undefined : name)}
            >
              {grouped(count)} {label}
            </button>
          )
        );
      })}
    </fieldset>
  );
}
