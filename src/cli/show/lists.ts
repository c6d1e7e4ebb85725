/** What `agent results`, `jobs` and `notify --list` print as JSON; the agent sends the same over its sockets. */
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { requireWatched } from '../../daemon/state.ts';
import { compareIds, type JobId, keyText } from '../../job.ts';
import { type JobInformation, shownJob, shownTask } from '../../job-information.ts';
import { Rule } from '../../notify/rules.ts';
import { resultPath, resultsParts } from '../../safe-names.ts';
import type { ResultRow, WatchState } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

export type ResultList = ReturnType<typeof resultList>;

/** @throws JobtailError job-unknown */
export function resultList(config: Config, store: Store, jobId: JobId) {
  const state = requireWatched(store, jobId);
  const directory = path.join(config.mirror.directory, ...resultsParts(jobId));
  // A link is as long as its live file.
  const lengths = new Map(store.liveFiles.ofJob(jobId).map((live) => [keyText(live), live.position]));
  const results = [...store.results.ofJob(jobId)].map((row) =>
    shownResult(directory, row.live === null ? row : { ...row, bytes: lengths.get(row.live) ?? null }),
  );
  return { jobId, state, results };
}

/** Complete: the file here has all bytes that the server had when it was fetched. */
function shownResult(directory: string, { name, state, reason, bytes, sha256, fetchedAt, listedAt }: ResultRow) {
  const found = resultPath(name);
  const file = 'refused' in found ? null : path.resolve(directory, ...found.parts);
  const complete = state === 'synced' || state === 'linked';
  return { name, path: file, complete, state, bytes, sha256, fetchedAt, listedAt, reason };
}

export type DeliveryList = ReturnType<typeof deliveryList>;

export function deliveryList(config: Config, store: Store) {
  const rules = config.notify.map((settings) => new Rule(settings));
  const numbers = new Map(rules.map(({ id }, index) => [id, index + 1]));
  const deliveries = store.outbox
    .all()
    .map(({ rule, deliveryId: _, lastError: error, dueAt: nextAt, madeAt, ...row }) => ({
      rule: numbers.get(rule) ?? null,
      target: rules[(numbers.get(rule) ?? 0) - 1]?.target ?? 'a rule that is in force no longer',
      state: nextAt === null ? ('given-up' as const) : ('waiting' as const),
      ...row,
      madeAt,
      nextAt,
      error,
    }));
  return { rules: rules.map(({ settings, target }) => ({ on: settings.on, target })), deliveries };
}

export type ListedJob = ReturnType<typeof listedJobs>[number];

/** The newest jobs are last, next to the prompt. `watchState`: null if it was never watched. */
export function listedJobs(reported: readonly JobInformation[], states: ReadonlyMap<JobId, WatchState>) {
  const listed = reported.map((job) => ({
    jobId: job.id,
    ...shownJob(job),
    watchState: states.get(job.id) ?? null,
    tasks: job.tasks.map(shownTask),
  }));
  return listed.sort((a, b) => compareIds(a.jobId, b.jobId));
}
