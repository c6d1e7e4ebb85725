/** A search over the live files of all jobs. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import { literal } from '../../../quick-pattern.ts';
import type { ErrorGroups, FindLine, FoundFile, FoundLines, FoundViewLine } from '../../contract/addresses.ts';
import { address, askPlace } from '../api.ts';
import { live } from '../live.ts';
import { useLines } from '../parts/hooks.ts';
import { Failure, Outside } from '../parts/words.tsx';
import { hashOf, type Route } from '../route.ts';
import { plainLine } from '../text/terminal.ts';
import { counted, grouped } from '../text/units.ts';
import { levelOf } from '../text/values.ts';

/** `files` once it is done. */
type Hits = { readonly hits: readonly FoundFile[]; readonly files?: number; readonly cut?: string };

const withLine = (so: Hits, line: FindLine): Hits =>
  'done' in line ? { ...so, ...line } : { ...so, hits: [...so.hits, line] };

export function SearchPage({ route }: { route: Route & { page: 'search' } }) {
  const { text, regex } = route;
  const field = useRef<HTMLInputElement>(null);
  const expression = useRef<HTMLInputElement>(null);
  useEffect(() => live.subscribe({ jobs: '1' }), []);
  useEffect(() => {
    if (text === '') field.current?.focus();
  }, [text]);
  const to = text === '' ? undefined : address('find', { text, ...(regex ? { regex: '1' } : {}) });
  // Another search is another page.
  const times = useSignal(0);
  const { answer, problem } = useLines(to, { hits: [] }, withLine, [times.value]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const typed = field.current?.value ?? '';
    const isExpression = expression.current?.checked === true;
    if (typed === text && isExpression === regex) times.value++;
    else location.hash = hashOf({ page: 'search', text: typed, regex: isExpression });
  };
  return (
    <main class="search-page">
      <form class="page-head" onSubmit={submit}>
        <h1>Search</h1>
        <input
          ref={field}
          type="search"
          maxLength={256}
          defaultValue={text}
          placeholder="Text in the live files of all jobs"
          aria-label="Search all jobs"
        />
        <label>
          <input ref={expression} type="checkbox" defaultChecked={regex} /> regular expression
        </label>
        <button type="submit" class="button">
          Search
        </button>
        <span class="fine" role="status">
          {to !== undefined && problem === undefined && summary(answer)}
        </span>
      </form>
      {problem !== undefined && <Failure error={problem} />}
      {answer.cut !== undefined && <Failure error={notAll(answer.cut)} />}
      <div class="scrolls">
        <p class="fine">Live files are searched, of all jobs. Results are not: open one to search it.</p>
        {text === '' && <Errors />}
        <section class="found-files" aria-label="Lines that were found">
          {answer.hits.map((file) => (
            <Found
              key={`${file.job}/${file.task}/${file.file}`}
              hits={file}
              note={counted(file.matches, 'line')}
              more={file.matches - file.lines.length}
              needle={regex ? '' : text}
            />
          ))}
        </section>
      </div>
    </main>
  );
}

const notAll = (cut: string) => ({ message: `Not everything was searched: ${cut}` });

function summary({ hits, files }: Hits): string {
  const lines = hits.reduce((sum, { matches }) => sum + matches, 0);
  const text = `${counted(lines, 'line')} in ${counted(hits.length, 'file')}`;
  return files === undefined ? `${text}, searching` : `${text} of ${grouped(files)}`;
}

interface FoundProps {
  readonly hits: FoundLines;
  readonly note: string;
  readonly more?: number;
  readonly needle: string;
}

function Found({ hits: { job, task, file, lines }, note, more = 0, needle }: FoundProps) {
  const name = live.jobs.value?.get(job)?.name;
  return (
    <article>
      <h2>
        <a href={hashOf({ page: 'live', jobId: job, files: [{ taskId: task, file }] })}>
          job {job} {name != null && <Outside text={name} />}, task {task}, {file}
        </a>
        <span class="fine">{note}</span>
      </h2>
      <ol>
        {lines.map(({ line, text }) => (
          <Line key={line} found={{ job, task, file, line, text }} needle={needle} />
        ))}
      </ol>
      {more > 0 && <p class="fine">and {counted(more, 'line')} more: open the file, and search it</p>}
    </article>
  );
}

let lastClick: { readonly from: string } | undefined;

/** A line with its number, in the colour of its level; a click leads to its place. */
function Line({ found: { job, task, file, line, text }, needle }: { found: FoundViewLine; needle: string }) {
  const linkTo = (at?: number) => hashOf({ page: 'live', jobId: job, files: [{ taskId: task, file, at }] });
  return (
    <li class={`row level-${levelOf(text) ?? 'none'}`}>
      <a
        class="found-line"
        href={linkTo()}
        onClick={(event) => {
          event.preventDefault();
          const click = { from: location.hash };
          lastClick = click;
          // Where a line begins is asked when it is opened; a file that is another one by now is shown from its end.
          void askPlace({ job, task, file }, { line: line - 1 })
            .catch(() => undefined)
            .then((at) => {
              // The reader may have gone elsewhere meanwhile.
              if (lastClick === click && location.hash === click.from) location.hash = linkTo(at?.byte);
            });
        }}
      >
        <span class="number">{grouped(line)}</span>{' '}
        <bdi class="text">
          {parts(text, needle).map((part, index) =>
            index % 2 === 1 ? <mark key={index}>{printable(part)}</mark> : printable(part),
          )}
        </bdi>
      </a>
    </li>
  );
}

/** The text in pieces; every second one is what was looked for. */
function parts(text: string, needle: string): string[] {
  const plain = plainLine(text).replaceAll('\t', '    ');
  if (needle === '') return [plain];
  return plain.split(new RegExp(`(${literal(needle)})`, 'giu'));
}

/** The lines of all jobs that look like errors, once they are asked for: that reads every mirror. */
function Errors() {
  const times = useSignal(0);
  const to = times.value === 0 ? undefined : address('errors', {});
  const { answer, problem } = useLines(to, undefined, latest, [times.value]);
  const failure = problem ?? (answer?.cut === undefined ? undefined : notAll(answer.cut));
  return (
    <section class="found-errors" aria-label="Errors">
      <button type="button" class="button" onClick={() => times.value++}>
        Show errors of all jobs
      </button>
      <span class="fine" role="status">
        {answer === undefined ? times.value > 0 && 'reading' : errorSummary(answer)}
      </span>
      {failure !== undefined && <Failure error={failure} />}
      {answer?.groups.map(({ tasks, ...first }) => (
        <Found
          key={`${first.job}/${first.task}/${first.file}/${first.line}`}
          hits={{ ...first, lines: [first] }}
          note={`in ${counted(tasks, 'task')}`}
          needle=""
        />
      ))}
    </section>
  );
}

const latest = (_: ErrorGroups | undefined, found: ErrorGroups): ErrorGroups | undefined => found;

const errorSummary = ({ tasks, files, filesDone, isDone }: ErrorGroups) =>
  isDone
    ? counted(tasks, 'task')
    : `${counted(tasks, 'task')}, ${grouped(filesDone)} of ${counted(files, 'file')} searched`;
