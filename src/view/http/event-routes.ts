/** The streams of events: what a page looks at, as it changes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Events, JobSummary } from '../contract/events.ts';
import type { Listener } from '../events/changes.ts';
import type { ShownJob, Snapshots } from '../events/snapshots.ts';
import { STATE, type ViewParts } from '../parts.ts';
import { streamed, type ViewApp } from './answers.ts';
import { Query } from './query.ts';

const MAX_JOBS = 8;
const MAX_FILES = 32;
/** Of many changes, one message. */
const GATHER_MS = 40;
/** Heartbeat: keeps an idle stream open, and detects a client that is gone. */
export const HEARTBEAT_MS = 15_000;

export function addEvents(app: ViewApp, parts: ViewParts): void {
  app.get('/api/events', (context) => {
    const query = new Query(context.req.url);
    const files = query.liveFiles(MAX_FILES);
    const jobs = query.jobs(MAX_JOBS);
    const { snapshots, lengths, limits, stores } = parts;
    const release = limits.take('streams');
    const watched = files.map(({ jobId, live }) => lengths.watch(jobId, live));
    snapshots.join();
    const topics: Topic[] = [
      whenOther('stateError', () => snapshots.stateError, 'null'),
      whenOther('agent', () => snapshots.agent()),
      whenOther('fleet', () => stores.state),
      ...(query.flag('jobs') ? [jobsTopic(snapshots)] : []),
      ...jobs.map((jobId) => jobTopic(snapshots, jobId)),
      ...watched.map((mirror) => whenOther('length', () => mirror.state)),
      ...(query.flag('service') ? [whenOther('service', () => snapshots.service())] : []),
    ];
    const listener = parts.changes.listen([STATE, ...watched.map(({ name }) => name)]);
    const end = () => {
      listener.close();
      for (const each of watched) lengths.leave(each);
      snapshots.leave();
      release();
    };
    const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
    return streamed(parts, context, reported(parts, topics, listener), { headers, end });
  });
}

/** A slow client gets fewer messages, not later ones: news is read when the last ones were sent. */
async function* reported({ settings }: ViewParts, topics: readonly Topic[], listener: Listener) {
  yield textOf([['hello', { program: settings.program, now: Date.now() }]]);
  while (!listener.isClosed) {
    const news = topics.flatMap((topic) => topic());
    if (news.length > 0) yield textOf(news);
    if (await listener.heard(HEARTBEAT_MS)) await sleep(GATHER_MS);
    else yield Buffer.from(':\n\n');
  }
}

const textOf = (messages: readonly Message[]) =>
  Buffer.from(messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''));

type Message = { [Name in keyof Events]: readonly [Name, Events[Name]] }[keyof Events];

/** What a stream can be about: all of it at the first call, then what changed since the last one. */
type Topic = () => Message[];

/** A value that is sent as a whole when its JSON is another than before. */
function whenOther<Name extends keyof Events>(
  name: Name,
  value: () => Events[Name] | undefined,
  sentBefore = '',
): Topic {
  let seen: unknown;
  let sent = sentBefore;
  return () => {
    const now = value();
    // Most of the time it is the very same.
    if (now === undefined || now === seen) return [];
    seen = now;
    const text = JSON.stringify(now);
    if (text === sent) return [];
    sent = text;
    return [[name, now] as unknown as Message];
  };
}

export function jobTopic(snapshots: Pick<Snapshots, 'isComplete' | 'job'>, jobId: JobSummary['jobId']): Topic {
  const missing = whenOther('missing', () => (snapshots.isComplete ? { jobId } : undefined));
  const job = whenOther('job', () => snapshots.job(jobId)?.detail);
  let sent: ReadonlyMap<string, string> = new Map();
  let seen: unknown;
  return () => {
    const files = snapshots.job(jobId)?.files;
    if (files === undefined) return missing();
    if (files === seen) return [];
    seen = files;
    const now = new Map(files.map((file) => [`${file.taskId}/${file.file}`, JSON.stringify(file)]));
    // A removed file cannot be sent as a change, so all files are sent.
    const whole = sent.size === 0 || [...sent.keys()].some((key) => !now.has(key));
    const fresh = files.filter(
      ({ taskId, file }) => whole || sent.get(`${taskId}/${file}`) !== now.get(`${taskId}/${file}`),
    );
    const change: Message[] =
      fresh.length > 0 || (whole && sent.size > 0) ? [['files', { jobId, whole, files: fresh }]] : [];
    sent = now;
    return [...job(), ...change];
  };
}

/** The short form for what changes at every poll of a job. */
function jobsTopic(snapshots: Snapshots): Topic {
  let seen: ReadonlyMap<string, ShownJob> | undefined;
  return () => {
    const now = snapshots.jobs();
    if (now === undefined || now === seen) return [];
    const before = seen;
    seen = now;
    const all = [...now.values()];
    if (before === undefined)
      return [['jobs', { whole: true, jobs: all.map(({ job }) => job), gone: [], polledAt: {} }]];
    const jobs = all.filter(({ job, text }) => before.get(job.jobId)?.text !== text).map(({ job }) => job);
    const gone = [...before.keys()].filter((jobId) => !now.has(jobId));
    const same = all.filter(({ job, text }) => {
      const old = before.get(job.jobId);
      return old?.text === text && old.job.polledAt !== job.polledAt;
    });
    const polledAt = Object.fromEntries(same.map(({ job }) => [job.jobId, job.polledAt ?? 0]));
    if (jobs.length + gone.length + same.length === 0) return [];
    return [['jobs', { whole: false, jobs, gone, polledAt }]];
  };
}
