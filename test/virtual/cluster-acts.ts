/** What happens on the cluster by chance, to the jobs that are there. */
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Chance } from './chance.ts';
import type { World } from './world.ts';

type ClusterPlace = Pick<World, 'service' | 'chance' | 'time' | 'later'>;
type Act = (world: ClusterPlace) => void;
type Happening = 'submit' | 'start' | 'write' | 'results' | 'task' | 'end' | 'restart' | 'delete';

const MAX_JOBS = 5;
/** A file is flushed so late after the end of its job, at most. */
const FLUSHED_WITHIN_MS = 40_000;
const ENDED = ['Finished', 'Failed', 'Canceled'];
const isRunning = ({ state }: { readonly state: string }) => state === 'Running';

export const CLUSTER_ACTS: Readonly<Record<Happening, Act>> = {
  submit(world) {
    if (world.service.jobs.size < MAX_JOBS) world.service.submit(`${501 + world.service.jobs.size}` as JobId);
  },
  start: (world) =>
    withJob(
      world,
      ({ state }) => state === 'Queued',
      (job) => job.to('Running', world.time.wallMs),
    ),
  write: (world) =>
    withJob(world, isRunning, (job) => {
      const { chance } = world;
      for (let left = chance.whole(1, 12), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(50, 60_000))
        world.later(delayMs, () => !job.isOver && writeSome(job, chance));
    }),
  results: (world) =>
    withJob(world, isRunning, (job) => {
      const { chance, time } = world;
      for (let left = chance.whole(1, 5), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(1, 100_000))
        world.later(delayMs, () => !job.isOver && writeResult(job, chance, time.wallMs));
    }),
  task: (world) => withJob(world, isRunning, (job) => job.tasks.length < 3 && job.addTask()),
  end: (world) =>
    withJob(world, isRunning, (job) => {
      const { chance, time } = world;
      job.to(chance.among(['Finished', 'Failed', 'Canceled']), time.wallMs);
      if (!chance.is(0.5)) return;
      world.later(
        chance.spread(100, FLUSHED_WITHIN_MS),
        () => job.isOver && job.state !== 'Deleted' && writeSome(job, chance),
      );
    }),
  restart: (world) =>
    withJob(
      world,
      ({ state }) => ENDED.includes(state),
      (job) => job.to('Running', world.time.wallMs),
    ),
  delete: (world) =>
    withJob(
      world,
      ({ state }) => ENDED.includes(state),
      (job) => job.to('Deleted', world.time.wallMs),
    ),
};

type Job = ReturnType<World['service']['job']>;

export function withJob<Place extends Pick<World, 'service' | 'chance'>>(
  world: Place,
  isMeant: (job: Job) => boolean,
  work: (job: Job) => unknown,
): void {
  const job = world.chance.any([...world.service.jobs.values()].filter(isMeant));
  if (job !== undefined) work(job);
}

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
