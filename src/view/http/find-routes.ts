/** A search over the mirrors of all jobs, as `agent grep` does it. */
import { asJobtailError } from '../../errors.ts';
import { get, type HttpContext, type HttpRoute } from '../../http/app.ts';
import { Refused } from '../../http/refused.ts';
import { jsonLines, streamed } from '../../http/streams.ts';
import type { JobId } from '../../job.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import { literal } from '../../quick-pattern.ts';
import { type ErrorGroup, type ErrorProgress, errorsIn, groupsOf } from '../../search/errors.ts';
import { mirrorsIn } from '../../search/mirrors.ts';
import { search } from '../../search/search.ts';
import type { ErrorGroups, FindLine } from '../contract/addresses.ts';
import type { ViewParts } from '../parts.ts';
import { Query } from './query.ts';

const MAX_TEXT = 256;
const MAX_HITS = 1_000;
/** Of each file, so that one that matches all the time does not hide the others. */
const MAX_HITS_OF_FILE = 20;
const MAX_CHARACTERS = 400;
const LIMIT_MS = 60_000;
const SHOW_MS = 500;
const MAX_GROUPS = 200;
const THREADS = 2;

export function findRoutes(parts: ViewParts): readonly HttpRoute[] {
  const searched = (context: HttpContext, linesOf: (files: Files, stop: AbortSignal) => AsyncIterable<object>) => {
    // Mirrors that cannot be listed take no place.
    const files = mirrorsIn(parts.settings.mirrorDirectory, { jobs: [] });
    const release = parts.limits.take('searches');
    const stop = new LinkedAbort(context.req.raw.signal).within(LIMIT_MS);
    const end = () => {
      stop.abort();
      stop.release();
      release();
    };
    const headers = { 'content-type': 'application/x-ndjson' };
    return streamed(parts, context, jsonLines(linesOf(files, stop.signal)), { headers, end });
  };
  return [
    get('/api/find', (context) => {
      const query = new Query(context.req.url);
      const text = query.text('text') ?? '';
      if (text === '' || text.length > MAX_TEXT) throw new Refused(400, `text is from 1 to ${MAX_TEXT} characters`);
      const source = query.flag('regex') ? text : literal(text);
      return searched(context, (files, stop) => found(files, source, stop));
    }),
    get('/api/errors', (context) => {
      const failed = failedJobs(parts);
      const { errorPatterns: patterns } = parts.settings;
      const isFailed = (jobId: JobId) => failed.has(jobId);
      return searched(context, (files, signal) =>
        errorLines(files.length, isFailed, (onUnreadable) =>
          errorsIn({ files, patterns, isFailed, onUnreadable, signal }),
        ),
      );
    }),
  ];
}

/** What was found so far, at most every `SHOW_MS`, and once at the end. */
async function* errorLines(
  files: number,
  isFailed: (jobId: JobId) => boolean,
  search: (onUnreadable: (error: string) => void) => AsyncIterable<ErrorProgress>,
): AsyncGenerator<ErrorGroups> {
  let unreadable: string | undefined;
  const onUnreadable = (error: string) => {
    unreadable ??= error;
  };
  const shown = ({ tasks, filesDone }: ErrorProgress, isDone: boolean, cut?: string): ErrorGroups => {
    // What failed is looked for first, however few tasks it has.
    const rankOf = ({ first }: ErrorGroup) => Number(isFailed(first.jobId));
    const groups = groupsOf(tasks.values()).sort((a, b) => rankOf(b) - rankOf(a));
    return {
      tasks: tasks.size,
      files,
      filesDone,
      isDone,
      ...(cut !== undefined && { cut }),
      groups: groups
        .slice(0, MAX_GROUPS)
        .map(({ tasks: count, first: { jobId: job, taskId: task, file, line, text } }) => ({
          tasks: count,
          job,
          task,
          file,
          line,
          text: text.slice(0, MAX_CHARACTERS),
        })),
    };
  };
  let last: ErrorProgress = { tasks: new Map(), files, filesDone: 0 };
  let shownAt = 0;
  try {
    for await (last of search(onUnreadable)) {
      if (performance.now() - shownAt < SHOW_MS) continue;
      yield shown(last, false);
      shownAt = performance.now();
    }
    yield shown(last, true, unreadable);
  } catch (thrown) {
    yield shown(last, true, reasonOf(thrown));
  }
}

function failedJobs({ stores }: ViewParts): ReadonlySet<JobId> {
  const reported = stores.all().flatMap(({ store }) => store.jobInformation.all());
  return new Set(reported.flatMap(({ jobId, information }) => (information.state === 'Failed' ? [jobId] : [])));
}

type Files = ReturnType<typeof mirrorsIn>;

/** Lines that match the expression, whatever their case. */
async function* found(files: Files, source: string, signal: AbortSignal): AsyncGenerator<FindLine> {
  let hits = 0;
  let filesDone = 0;
  let lines: { line: number; text: string }[] = [];
  let cut: string | undefined;
  try {
    // In threads of its own, also where there is little to search: an expression may never end.
    for await (const event of search({
      files,
      pattern: { source, ignoreCase: true },
      wanted: { what: 'lines', maxLines: MAX_HITS_OF_FILE, numbered: true },
      signal,
      threads: THREADS,
    })) {
      if (event.kind !== 'end') {
        lines.push(...event.lines.map(({ number, bytes }) => ({ line: number, text: textOf(bytes) })));
        continue;
      }
      const { jobId: job, taskId: task, file } = event.file;
      const shown = lines.slice(0, MAX_HITS - hits);
      filesDone += 1;
      cut ??= event.error ?? undefined;
      hits += shown.length;
      lines = [];
      if (event.count > 0) yield { job, task, file, lines: shown, matches: event.count };
    }
  } catch (thrown) {
    cut = reasonOf(thrown);
  }
  yield { done: true, files: filesDone, ...(cut !== undefined && { cut }) };
}

/** `bytes` has one character for each byte. */
const textOf = (bytes: string) =>
  Buffer.from(bytes.slice(0, 4 * MAX_CHARACTERS), 'latin1')
    .toString()
    .slice(0, MAX_CHARACTERS);

function reasonOf(thrown: unknown): string {
  const { code, message } = asJobtailError(thrown);
  return code === 'aborted' ? `it took more than ${LIMIT_MS / 1000} s` : message;
}
