/** A table that is sorted, and what narrows it down: the states with their counts. */
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { GROUPS, type Group } from '../jobs/list.ts';
import { grouped } from '../text/units.ts';
import { useVirtual } from './hooks.ts';
import { type Column, clicked, type Sort } from './sort.ts';

interface TableProps<Name extends string, Item> {
  /** Of the classes: `job` for `job-list`, `job-cells`, `job-state`. */
  readonly kind: keyof typeof ROW_PX;
  readonly label: string;
  /** Left out where the table has no heads. */
  readonly columns?: Readonly<Record<Name, Pick<Column<never>, 'label' | 'isDown'>>> | undefined;
  readonly sort?: Signal<Sort<Name>>;
  readonly rows: readonly Item[];
  readonly keyOf: (row: Item) => string;
  readonly classOf?: (row: Item) => string;
  /** What a row has in each column, by the name of the column, and below the columns. */
  readonly cells: (row: Item) => Readonly<Record<string, ComponentChildren>>;
  /** The row that is brought onto the screen. */
  readonly shownKey?: string | undefined;
  readonly children?: ComponentChildren;
}

/** Of a row of one line, as the styles have it: the length of a list must not change as one scrolls. */
const ROW_PX = { job: 36, task: 30, agent: 32, entry: 32, csv: 26 } as const;

/** A table that draws the rows on the screen, and is sorted by a click on a head. */
export function Table<Name extends string, Item>(props: TableProps<Name, Item>) {
  const { kind, label, columns, sort, rows, keyOf, classOf, cells, shownKey, children } = props;
  const scroller = useRef<HTMLElement>(null);
  const list = useVirtual({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX[kind],
    getItemKey: (index) => (rows[index] === undefined ? index : keyOf(rows[index])),
    overscan: 3,
  });
  const place = shownKey === undefined ? -1 : rows.findIndex((row) => keyOf(row) === shownKey);
  useEffect(() => {
    if (place >= 0) list.scrollToIndex(place, { align: 'auto' });
  }, [place >= 0, shownKey]);
  const heads = columns === undefined ? 0 : 1;
  return (
    <section class={`${kind}-list`} ref={scroller} aria-label={`List: ${label}`}>
      <table aria-label={label} aria-rowcount={rows.length + heads}>
        {columns !== undefined && sort !== undefined && <Heads kind={kind} columns={columns} sort={sort} />}
        <tbody style={{ height: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index];
            return (
              row !== undefined && (
                <tr
                  key={key}
                  class={`${kind}-row ${kind}-cells ${classOf?.(row) ?? ''}`}
                  aria-rowindex={index + 1 + heads}
                  data-index={index}
                  ref={list.measureElement}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  {Object.entries(cells(row)).map(([name, content]) => (
                    <td key={name} class={`${kind}-${name}`}>
                      {content}
                    </td>
                  ))}
                </tr>
              )
            );
          })}
        </tbody>
      </table>
      {children}
    </section>
  );
}

type HeadsProps<Name extends string> = Pick<Required<TableProps<Name, unknown>>, 'kind' | 'sort'> & {
  readonly columns: Readonly<Record<Name, Pick<Column<never>, 'label' | 'isDown'>>>;
};

function Heads<Name extends string>({ kind, columns, sort }: HeadsProps<Name>) {
  const { by, isDown } = sort.value;
  return (
    <thead>
      <tr class={`heads ${kind}-cells`}>
        {(Object.keys(columns) as Name[]).map((name) => (
          <th
            key={name}
            class={`${kind}-${name}`}
            scope="col"
            aria-sort={by !== name ? undefined : isDown ? 'descending' : 'ascending'}
          >
            <button type="button" title="Sort" onClick={() => (sort.value = clicked(columns, sort.value, name))}>
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
