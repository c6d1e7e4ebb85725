/** What happens on the cluster by chance, to the jobs that are there. */
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Chance } from './chance.ts';
import type { World } from './world.ts';

type ClusterPlace = Pick<World, 'service' | 'chance' | 'time' | 'later'>;
type Job = ReturnType<World['service']['job']>;

const MAX_JOBS = 5;
/** A file is flushed so late after the end of its job, at most. */
const FLUSHED_WITHIN_MS = 40_000;
const isRunning = ({ state }: Job) => state === 'Running';
const isEnded = ({ state }: Job) => ['Finished', 'Failed', 'Canceled'].includes(state);

/** Something happens to one of the jobs that are meant, if there is one. */
export const onJob =
  <Place extends Pick<World, 'service' | 'chance'>>(
    isMeant: (job: Job) => boolean,
    work: (job: Job, world: Place) => unknown,
  ) =>
  (world: Place): void => {
    const job = world.chance.any([...world.service.jobs.values()].filter(isMeant));
    if (job !== undefined) work(job, world);
  };

const to = (state: string, isMeant: (job: Job) => boolean) =>
  onJob(isMeant, (job, { time }: ClusterPlace) => job.to(state, time.wallMs));

export const CLUSTER_ACTS = {
  submit({ service }: ClusterPlace) {
    if (service.jobs.size < MAX_JOBS) service.submit(`${501 + service.jobs.size}` as JobId);
  },
  start: to('Running', ({ state }) => state === 'Queued'),
  write: onJob(isRunning, (job, { chance, later }: ClusterPlace) => {
    for (let left = chance.whole(1, 12), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(50, 60_000))
      later(delayMs, () => !job.isOver && writeSome(job, chance));
  }),
  results: onJob(isRunning, (job, { chance, time, later }: ClusterPlace) => {
    for (let left = chance.whole(1, 5), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(1, 100_000))
      later(delayMs, () => !job.isOver && writeResult(job, chance, time.wallMs));
  }),
  task: onJob(isRunning, (job) => job.tasks.length < 3 && job.addTask()),
  end: onJob(isRunning, (job, { chance, time, later }: ClusterPlace) => {
    job.to(chance.among(['Finished', 'Failed', 'Canceled']), time.wallMs);
    if (!chance.is(0.5)) return;
    later(chance.spread(100, FLUSHED_WITHIN_MS), () => job.isOver && !job.isDeleted && writeSome(job, chance));
  }),
  restart: to('Running', isEnded),
  delete: to('Deleted', isEnded),
} as const;

/** One of its files grows, or begins anew. */
export function writeSome({ tasks }: Job, chance: Chance): void {
  const task = chance.any(tasks);
  if (task === undefined) return;
  const file = task.files[chance.among(LIVE_FILE_NAMES)];
  if (file.contents.length > 0 && chance.is(0.12)) file.rewrite(chance.whole(0, 12));
  else file.append(chance.is(0.1) ? chance.whole(50, 300) : chance.whole(1, 8));
}

export function writeResult(job: Job, chance: Chance, now: number): void {
  const name = `/out/result-${chance.whole(1, 4)}.dat`;
  const size = chance.is(0.1) ? chance.whole(20_000, 90_000) : chance.whole(0, 3_000);
  const times = job.results.get(name)?.contents.length ?? 0;
  job.result(name, 'file', now, Buffer.alloc(size, `${job.id} ${name} ${times}\n`));
}
