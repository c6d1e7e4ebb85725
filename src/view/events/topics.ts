/** What a stream of events can be about. Each topic says what is new since it last said something. */
import type { Events } from '../contract/events.ts';
import type { JobSummary } from '../contract/jobs.ts';
import type { Figure } from '../contract/service.ts';
import type { WatchedMirror } from './file-lengths.ts';
import type { Recorder } from './recorder.ts';
import type { ShownJob, Snapshots } from './snapshots.ts';

export type Message = { [Name in keyof Events]: readonly [Name, Events[Name]] }[keyof Events];

/** The first time all there is, then what changed. */
export type Topic = () => Message[];

/** A value that is said as a whole when it is another. */
function saidOnce<Name extends keyof Events>(name: Name, value: () => Events[Name] | undefined): Topic {
  let seen: unknown;
  let said = '';
  return () => {
    const now = value();
    // Most of the time it is the very same.
    if (now === undefined || now === seen) return [];
    seen = now;
    const text = JSON.stringify(now);
    if (text === said) return [];
    said = text;
    return [[name, now] as unknown as Message];
  };
}

export const agentTopic = (snapshots: Snapshots): Topic => saidOnce('agent', () => snapshots.agent());
export const serviceTopic = (snapshots: Snapshots): Topic => saidOnce('service', () => snapshots.service());
export const troubleTopic = (snapshots: Snapshots): Topic => {
  const topic = saidOnce('trouble', () => snapshots.trouble);
  let isFirst = true;
  return () => {
    const found = topic();
    const isNothing = isFirst && snapshots.trouble === null;
    isFirst = false;
    return isNothing ? [] : found;
  };
};

export const lengthTopic = (watched: WatchedMirror): Topic => saidOnce('length', () => watched.state);

export function jobTopic(snapshots: Pick<Snapshots, 'trouble' | 'job'>, jobId: JobSummary['jobId']): Topic {
  const missing = saidOnce('missing', () => (snapshots.trouble === null ? { jobId } : undefined));
  const job = saidOnce('job', () => snapshots.job(jobId)?.detail);
  let said: ReadonlyMap<string, string> = new Map();
  let seen: unknown;
  return () => {
    const files = snapshots.job(jobId)?.files;
    if (files === undefined) return missing();
    if (files === seen) return [];
    seen = files;
    const now = new Map(files.map((file) => [`${file.taskId}/${file.file}`, JSON.stringify(file)]));
    // One that is gone is not among those that changed: all the others follow.
    const whole = said.size === 0 || [...said.keys()].some((key) => !now.has(key));
    const fresh = files.filter(
      ({ taskId, file }) => whole || said.get(`${taskId}/${file}`) !== now.get(`${taskId}/${file}`),
    );
    const change: Message[] =
      fresh.length > 0 || (whole && said.size > 0) ? [['files', { jobId, whole, files: fresh }]] : [];
    said = now;
    return [...job(), ...change];
  };
}

/** What of a job changes at every visit is said in short. */
export function jobsTopic(snapshots: Snapshots): Topic {
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

export function figuresTopic(recorder: Recorder): Topic {
  let said: Figure | undefined;
  return () => {
    const { startedAt, figures, lastFigure } = recorder;
    if (lastFigure === undefined || said === lastFigure) return [];
    const isFirst = said === undefined;
    said = lastFigure;
    return [isFirst ? ['figures', { startedAt, figures }] : ['figure', lastFigure]];
  };
}
