/** The streams of events: what a page looks at, as it changes. */
import { get, type HttpRoute } from '../../http/app.ts';
import { Refused } from '../../http/refused.ts';
import { newsLines, streamed } from '../../http/streams.ts';
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import type { EventLine, Events, Figure, FileLength, FileState, JobSummary } from '../contract/events.ts';
import type { Snapshots } from '../events/snapshots.ts';
import type { ViewParts } from '../parts.ts';
import { Query } from './query.ts';

const MAX_JOBS = 8;
const MAX_FILES = 32;

export function eventRoutes(parts: ViewParts): readonly HttpRoute[] {
  return [
    get('/api/events', (context) => {
      const query = new Query(context.req.url);
      const mirrors = query.liveFiles(MAX_FILES);
      const jobs = query.jobs(MAX_JOBS);
      const { settings, snapshots, limits, stores } = parts;
      const release = limits.take('streams');
      const hello = { program: settings.program, now: Date.now() };
      const topics: Topic[] = [
        whenOther('hello', () => hello),
        whenOther('stateError', () => snapshots.stateError),
        whenOther('agent', () => snapshots.agent()),
        whenOther('fleet', () => stores.state),
        ...(query.flag('jobs') ? [jobsTopic(snapshots)] : []),
        ...jobs.map((jobId) => jobTopic(snapshots, jobId)),
        ...mirrors.map((mirror) => whenOther('length', () => lengthOf(parts, mirror))),
        ...(query.flag('service') ? [whenOther('service', () => snapshots.service()), figuresTopic(parts)] : []),
      ];
      const over = new AbortController();
      const end = () => {
        over.abort();
        release();
      };
      const headers = { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no' };
      const news = () => {
        snapshots.refresh();
        return topics.flatMap((topic) => topic());
      };
      return streamed(parts, context, newsLines(news, over.signal), { headers, end });
    }),
  ];
}

/** What a stream can be about: all of it at the first call, then what changed since the last one. */
type Topic = () => EventLine[];

/** A value that is sent as a whole when its JSON is another than before. */
function whenOther<Name extends keyof Events>(name: Name, value: () => Events[Name] | undefined): Topic {
  let seen: unknown;
  let sent = '';
  return () => {
    const now = value();
    // Most of the time it is the very same.
    if (now === undefined || now === seen) return [];
    seen = now;
    const text = JSON.stringify(now);
    if (text === sent) return [];
    sent = text;
    return [[name, now] as unknown as EventLine];
  };
}

/** How long a mirror is; undefined while there is none, or it cannot be read. */
function lengthOf(
  { contents, snapshots }: ViewParts,
  { jobId, live }: { readonly jobId: JobId; readonly live: LiveFileKey },
): FileLength | undefined {
  try {
    const content = contents.open({ jobId, live, version: undefined });
    content.close();
    return { file: `${jobId}/${keyText(live)}`, version: content.version, bytes: content.bytes };
  } catch (error) {
    // Of a mirror that does not exist yet, or cannot be read, the request for its bytes has the cause. The stream reports
    // a state that cannot be read.
    const isOfMirror = error instanceof Refused || (error as NodeJS.ErrnoException).syscall !== undefined;
    if (!isOfMirror) snapshots.failed(error);
    return undefined;
  }
}

/** All figures at the first call, then newer ones. */
function figuresTopic({ figures }: ViewParts): Topic {
  let sent: Figure | undefined;
  let isFirst = true;
  return () => {
    const all = figures?.all ?? [];
    const last = all.at(-1);
    if (last === sent && !isFirst) return [];
    isFirst = false;
    // All of them, where the clock was set back: then the last one is gone.
    const from = sent === undefined ? 0 : all.indexOf(sent) + 1;
    sent = last;
    return [['figures', figures && all.slice(from)]];
  };
}

export function jobTopic(
  snapshots: { readonly isComplete: boolean; job: Snapshots['job'] },
  jobId: JobSummary['jobId'],
): Topic {
  let isMissing = false;
  const sinceBegin = () => ({
    job: whenOther('job', () => snapshots.job(jobId)?.detail),
    changesOf: listChanges(({ taskId, file }: FileState) => `${taskId}/${file}`),
  });
  let sent = sinceBegin();
  return () => {
    const files = snapshots.job(jobId)?.files;
    const wasMissing = isMissing;
    isMissing = files === undefined && (wasMissing || snapshots.isComplete);
    // What comes back comes whole, also if it is the same.
    if (isMissing) sent = sinceBegin();
    if (files === undefined) return isMissing && !wasMissing ? [['missing', { jobId }]] : [];
    const change = sent.changesOf(files);
    const news: EventLine[] =
      change === undefined ? [] : [['files', { jobId, whole: change.whole, files: change.items }]];
    return [...sent.job(), ...news];
  };
}

function jobsTopic(snapshots: Snapshots): Topic {
  const changesOf = listChanges(({ jobId }: JobSummary) => jobId);
  return () => {
    const change = changesOf(snapshots.jobs());
    return change === undefined ? [] : [['jobs', { whole: change.whole, jobs: change.items }]];
  };
}

/** All of a list at first, and when one is gone; else those that changed since. Undefined if none did. */
function listChanges<Item>(keyOf: (item: Item) => string) {
  let seen: readonly Item[] | undefined;
  let sent: ReadonlyMap<string, string> | undefined;
  return (list: readonly Item[] | undefined) => {
    if (list === undefined || list === seen) return undefined;
    seen = list;
    const before = sent;
    const now = new Map(list.map((item) => [keyOf(item), JSON.stringify(item)]));
    sent = now;
    if (before === undefined || [...before.keys()].some((key) => !now.has(key))) return { whole: true, items: list };
    const items = list.filter((item) => before.get(keyOf(item)) !== now.get(keyOf(item)));
    return items.length > 0 ? { whole: false, items } : undefined;
  };
}
