/** The lines of numbers of a file, and of the same file of other jobs, as curves that grow with it. */
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { type Kind, Numbers } from '../file/numbers.ts';
import { useLive } from '../live.ts';
import { Check, IconButton } from '../parts/button.tsx';
import { Plot } from '../parts/plot.tsx';
import { axesOf, joined, numberText, risingColumn, smoothed } from '../text/plotted.ts';
import { counted, grouped } from '../text/units.ts';

interface PlotPanelProps {
  readonly content: () => ContentQuery;
  readonly kinds: readonly Kind[];
  /** How long the content is. */
  readonly bytes: number;
  /** Shows the line that begins at a byte; undefined where lines are not shown. */
  readonly onLine?: (byte: number) => void;
  readonly onClose: () => void;
}

/** The weight of the values before, for each choice. */
const SMOOTHINGS: readonly (readonly [name: string, weight: number])[] = [
  ['as they are', 0],
  ['smoothed', 0.6],
  ['smoother', 0.9],
  ['smoothest', 0.98],
];
/** Only so many colours differ clearly. */
const MAX_OTHERS = 7;

export function PlotPanel({ content, kinds, bytes, onLine, onClose }: PlotPanelProps) {
  const chosen = useSignal(0);
  /** The column of the common axis; undefined: the one that rises. */
  const over = useSignal<number | undefined>(undefined);
  const smoothing = useSignal(0);
  const isLogarithmic = useSignal(false);
  const others = useSignal<readonly string[]>([]);
  const kind = kinds[chosen.value];
  const numbers = useMemo(
    () => (kind === undefined ? undefined : new Numbers(content, { like: kind.byte })),
    [kind, content],
  );
  useEffect(() => () => numbers?.close(), [numbers]);
  useEffect(() => void numbers?.grow(), [numbers, bytes]);
  const compared = useCompared(content, others.value, numbers?.series.value.words);
  const { names = [], columns = [], at = [], problem } = numbers?.series.value ?? {};
  const x = over.value !== undefined && over.value < names.length ? over.value : risingColumn(columns);
  const shown = names.map((_, index) => index).filter((index) => index !== x && index !== 0);
  const order = [x, ...shown];
  const weight = SMOOTHINGS[smoothing.value]?.[1] ?? 0;
  const tableOf = (name: string, all: typeof columns) => ({
    name,
    columns: order.map((index, place) => (place === 0 ? (all[index] ?? []) : smoothed(all[index] ?? [], weight))),
  });
  const tables = [
    tableOf(compared.length === 0 ? '' : content().job, columns),
    ...compared.map(({ jobId, series }) => tableOf(jobId, series.columns)),
  ];
  const curves = joined(
    tables,
    order.map((index) => printable(names[index] ?? '')),
  );
  const show = (place: number) => {
    const row = columns[x]?.indexOf(place) ?? -1;
    if (row >= 0) onLine?.(at[row] ?? 0);
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
        <Choice
          label="Values"
          value={smoothing.value}
          names={SMOOTHINGS.map(([name]) => name)}
          onChange={(value) => (smoothing.value = value)}
        />
        <Check value={isLogarithmic}>logarithmic</Check>
        <OtherJobs own={content().job} chosen={others.value} onChange={(jobs) => (others.value = jobs)} />
        <span class="fine" role="status">
          {kind === undefined ? 'no lines of numbers here' : (problem ?? `${grouped(columns[0]?.length ?? 0)} points`)}
          {compared.map(
            ({ jobId, series }) =>
              `; job ${jobId}: ${series.problem ?? (series.at.length === 0 ? 'no such lines' : counted(series.at.length, 'point'))}`,
          )}
        </span>
        <IconButton icon="close" label="Close the plot" onClick={onClose} />
      </div>
      {names.length > 1 && (
        <Plot
          label={`${kind?.words ?? ''}: ${curves.names.slice(1).join(', ')}`}
          names={curves.names}
          columns={curves.columns}
          axes={axesOf(curves.columns.slice(1))}
          format={numberText}
          isLogarithmic={isLogarithmic.value}
          {...(onLine === undefined ? {} : { onPoint: show })}
        />
      )}
    </section>
  );
}

/** The same lines of other jobs: of the result of the same name, or of the same live file of the task at the same place. */
function useCompared(content: () => ContentQuery, jobs: readonly string[], words: string | undefined) {
  const live = useLive();
  const own = content();
  useEffect(() => live.alsoSubscribe({ job: jobs }), [live, jobs]);
  const files = useComputed(() => live.files.value);
  const key = JSON.stringify(jobs.map((jobId) => [jobId, contentOf(own, jobId, files.value)]));
  const compared = useMemo(
    () =>
      jobs.flatMap((jobId) => {
        const other = contentOf(own, jobId, files.value);
        if (other === undefined || words === undefined) return [];
        return [{ jobId, numbers: new Numbers(() => other, { words }) }];
      }),
    [key, words],
  );
  useEffect(() => {
    for (const { numbers } of compared) void numbers.grow();
    return () => {
      for (const { numbers } of compared) numbers.close();
    };
  }, [compared]);
  return compared.map(({ jobId, numbers }) => ({ jobId, series: numbers.series.value }));
}

type Files = ReturnType<typeof useLive>['files']['value'];

function contentOf(own: ContentQuery, job: string, files: Files): ContentQuery | undefined {
  if ('result' in own) return { job, result: own.result };
  const tasksOf = (jobId: string) => [...new Set((files.get(jobId) ?? []).map(({ taskId }) => taskId))];
  const tasks = tasksOf(job);
  const task = tasks[Math.max(0, tasksOf(own.job).indexOf(own.task))] ?? tasks[0];
  return task === undefined ? undefined : { job, task, file: own.file };
}

interface OtherJobsProps {
  readonly own: string;
  readonly chosen: readonly string[];
  readonly onChange: (jobs: readonly string[]) => void;
}

/** Adds jobs to the plot, and removes them. */
function OtherJobs({ own, chosen, onChange }: OtherJobsProps) {
  const live = useLive();
  useEffect(() => live.alsoSubscribe({ jobs: '1' }), [live]);
  const free = [...(live.jobs.value?.values() ?? [])].filter(({ jobId }) => jobId !== own && !chosen.includes(jobId));
  return (
    <>
      {chosen.map((jobId) => (
        <button
          key={jobId}
          type="button"
          class="button"
          aria-label={`Remove job ${jobId} from the plot`}
          onClick={() => onChange(chosen.filter((one) => one !== jobId))}
        >
          {jobId} ×
        </button>
      ))}
      {free.length > 0 && chosen.length < MAX_OTHERS && (
        <label class="choice">
          with
          <select
            value=""
            onChange={(event) => event.currentTarget.value !== '' && onChange([...chosen, event.currentTarget.value])}
          >
            <option value="">no other job</option>
            {free.map(({ jobId, name }) => (
              <option key={jobId} value={jobId}>
                {jobId} {printable(name ?? '')}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
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
