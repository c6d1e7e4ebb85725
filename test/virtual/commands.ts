/** What happens in a run, by chance: on the cluster, by commands, to the service, the disk, the machine. */

import fs, { writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { isHere, proofs, type Verified } from '../../src/agent/pass/verification.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import { EXIT } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Store } from '../../src/store/store.ts';
import { type Settings, settingsOf } from './agent.ts';
import { CLUSTER_ACTS, onJob } from './cluster-acts.ts';
import { CODES, type Fault } from './faults.ts';
import type { World } from './world.ts';

export const MINUTE_MS = 60_000;
/** The job of worlds in which nothing happens by chance. */
export const JOB = '501' as JobId;
/** A verification of a few small files, each of which may hang up to its time limit. */
const VERIFIED_WITHIN_MS = 120 * MINUTE_MS;
/** A stop, or a reload, takes no longer beside its flushes, whatever hangs (docs/service.md). */
const MAX_STOP_MS = 10_000;
/** One after the other, of a step that is not broken off: a mirror is rotated (5), begins to grow, and is committed. */
const MAX_STEP_FLUSHES = 7;

/** How often each of them happens. */
const WEIGHTS = {
  ...{ submit: 6, start: 8, write: 30, results: 14, task: 3, end: 7, restart: 2, delete: 0.5 },
  ...{ watch: 8, unwatch: 2, sync: 3, verify: 1, mine: 2, reload: 2, stop: 2, kill: 4, 'kill-in-call': 4 },
  ...{ fault: 12, pause: 3, 'sign-in': 4, release: 2, receiver: 2, disk: 5, 'slow-disk': 1, 'full-disk': 1 },
  ...{ 'full-disk-unreported': 2, 'wall-clock': 2, suspend: 1, standstill: 1, nothing: 10 },
} as const;

type Act = (world: World) => void | Promise<void>;

const ACTS: Readonly<Record<keyof typeof WEIGHTS, Act>> = {
  ...CLUSTER_ACTS,
  watch: onJob(
    () => true,
    ({ id, tasks }, world: World) =>
      watch(
        world,
        id,
        tasks.map((task) => task.id),
      ),
  ),
  unwatch: (world) =>
    withWatched(world, (store, jobId) => {
      const isNow = world.chance.is(0.3);
      store.transaction(() => {
        store.jobs.unwatch(jobId, isNow ? 'ended' : 'ending');
        if (!isNow) store.requests.add(jobId, 'unwatch', world.time.wallMs);
      });
    }),
  sync: (world) =>
    withWatched(world, (store, jobId) => {
      store.transaction(() => store.requests.add(jobId, 'sync', world.time.wallMs));
    }),
  mine: (world) =>
    command(world, (store) => {
      if (world.chance.is(0.4)) store.watchMine.remove('command');
      else
        store.watchMine.save({
          ...{ include: ['**'], exclude: [], maxAgeMs: 86_400_000 },
          ...{ maxJobs: world.chance.whole(1, 4), source: 'command', since: world.time.wallMs },
        });
    }),
  /** One key changes, or all of them. */
  async reload(world) {
    const { chance } = world;
    const drawn = { ...settingsOf(chance), watch: world.jobIds().filter(() => chance.is(0.3)) };
    const keys = Object.keys(drawn) as (keyof typeof drawn)[];
    const changed = chance.is(0.3) ? keys : [chance.among(keys)];
    world.note(`  ${changed.join(' ')}`);
    await reload(world, Object.fromEntries(changed.map((key) => [key, drawn[key]])) as Partial<Settings>);
  },
  async stop(world) {
    if (!world.isUp) return world.start();
    await ended(world, world.agent.stop());
  },
  fault({ service, chance, time }) {
    const names = ['/out/result-1.dat', '/out/result-2.dat'];
    const fault: Fault = {
      code: chance.is(0.4) ? chance.among(['silent', 'slow', 'cut', 'cut'] as const) : chance.among(CODES),
      ...(chance.is(0.5) ? { operations: [chance.among(OPERATIONS)] } : {}),
      ...(chance.is(0.4) && service.jobs.size > 0 ? { jobId: chance.among([...service.jobs.keys()]) } : {}),
      ...(chance.is(0.1) ? { file: chance.among(names) } : {}),
      ...(chance.is(0.5) ? { retryAfterMs: chance.spread(1_000, 10 * MINUTE_MS) } : {}),
      share: chance.among([1, 1, 0.3]),
      until: time.passedMs + chance.spread(1_000, 60 * MINUTE_MS),
    };
    service.faults.push(fault);
  },
  /** For a while, the service answers with an error and with how long nothing may be sent to it. */
  pause({ service, chance, time }) {
    const code = chance.among(['rate-limited', 'unavailable', 'http-status', 'session-lost'] as const);
    const [retryAfterMs, forMs] = [chance.spread(1_000, 10 * MINUTE_MS), chance.spread(1_000, 2 * MINUTE_MS)];
    service.faults.push({ code, retryAfterMs, share: 1, until: time.passedMs + forMs });
  },
  'sign-in'({ service, chance }) {
    if (chance.is(0.3)) service.forgetSessions();
    else service.forgetSessionsWith(chance.whole(1, 3));
    if (chance.is(0.3)) service.refusesSignIn = !service.refusesSignIn;
  },
  release: ({ service }) => service.upgrade(),
  receiver({ receiver, chance }) {
    receiver.state = chance.among(['takes', 'refuses', 'silent']);
  },
  'slow-disk'({ disk, chance }) {
    disk.flushMs = chance.is(0.4) ? 0 : chance.spread(10, 20_000);
  },
  'full-disk'(world) {
    world.disk.full = world.chance.among(['all', 'all', 'of mirrors']);
    world.later(world.chance.spread(1_000, 120 * MINUTE_MS), () => {
      world.disk.full = 'no';
    });
  },
  /** A full disk while notifications are not taken: either may be over first, or only the disk. */
  async 'full-disk-unreported'(world) {
    const { receiver, chance } = world;
    await ACTS['full-disk'](world);
    receiver.state = chance.among(['refuses', 'silent']);
    if (chance.is(0.3)) return;
    world.later(chance.spread(1_000, 120 * MINUTE_MS), () => {
      receiver.state = 'takes';
    });
  },
  standstill({ agent: { process }, time, chance }) {
    // Another stop does not end an earlier one, whose timers wait until its end.
    process.stoppedUntil = Math.max(process.stoppedUntil, time.passedMs + chance.spread(1_000, 30 * MINUTE_MS));
  },
  async verify(world) {
    const job = world.isUp ? world.chance.any(world.agent.store.jobs.all()) : undefined;
    if (job === undefined) return;
    const found = await verified(world, job.jobId);
    if (found !== undefined)
      world.note(`  ${job.jobId}: ${found.filter(isHere).length} of ${found.length} files are here`);
  },
  disk({ disk, chance }) {
    disk.failAfter(chance.whole(0, 60), chance.among(['EIO', 'ENOSPC', 'EACCES']));
  },
  async kill(world) {
    if (world.isUp) await world.kill(world.chance.is(0.6));
    world.start();
  },
  'kill-in-call'(world) {
    world.disk.endAfter(world.chance.whole(0, 80), () => {
      world.note('the agent is killed within a call');
      world.agent.kill();
    });
  },
  'wall-clock'({ time, chance }) {
    time.stepWall(chance.among([-1, 1]) * chance.spread(1_000, 48 * 60 * MINUTE_MS));
  },
  suspend({ time, chance, service }) {
    time.stepWall(chance.spread(MINUTE_MS, 12 * 60 * MINUTE_MS));
    service.forgetSessions();
  },
  nothing() {},
};

const OPERATIONS = [
  'DownloadPartsOfJobFilesFromCluster',
  'ListChangedFilesForJob',
  'DownloadFileFromCluster',
  'GetCurrentInfoForJob',
  'ListJobsForCurrentUser',
] as const;

/** Two jobs of which one is watched. */
export function begin(world: World): void {
  CLUSTER_ACTS.submit(world);
  CLUSTER_ACTS.submit(world);
  const { chance, time } = world;
  const job = chance.among([...world.service.jobs.values()]);
  watch(world, job.id, []);
  job.to('Running', time.wallMs);
}

/** Something happens, and some time passes. */
export async function step(world: World): Promise<void> {
  const { chance } = world;
  const happening = chance.weighted(WEIGHTS);
  world.note(`- ${happening}`);
  world.agent.line?.explain();
  await ACTS[happening](world);
  await world.pass(chance.is(0.7) ? chance.spread(20, 5 * MINUTE_MS) : chance.spread(5 * MINUTE_MS, 240 * MINUTE_MS));
  if (world.disk.isDead) await world.kill(chance.is(0.6));
  if (!world.isUp && chance.is(0.7)) world.start();
}

type Job = ReturnType<World['service']['job']>;

interface ListedFile {
  readonly content: Buffer;
  /** Where it may be here: a live file that no poll has read yet is a result. */
  readonly places: readonly string[];
}

/** The files of a job as they are now, by their listed names. */
function listedOf(mirrors: string, { id: jobId, tasks, results }: Job): Map<string, ListedFile> {
  const live = tasks.flatMap(({ id: taskId, files }) =>
    LIVE_FILE_NAMES.map((file) => {
      const mirror = mirrorPath(mirrors, jobId, { taskId, file });
      return { name: `/${taskId}/${file}.txt`, mirror: [mirror], contents: files[file].contents };
    }),
  );
  const others = [...results].map(([name, { contents }]) => ({ name, mirror: [], contents }));
  return new Map(
    [...live, ...others].flatMap(({ name, mirror, contents }) => {
      const places = [...mirror, path.join(resultsDirectory(mirrors, jobId), name)];
      return contents.slice(-1).map((content) => [name, { content, places }] as const);
    }),
  );
}

/** A command beside the agent: it changes the store, and mostly wakes the agent up. */
function command(world: World, work: (store: Store) => void): void {
  if (!world.isUp) return;
  const { disk } = world;
  const run = () => {
    const store = openSharedStore(world.agent.config);
    work(store);
    store.close();
  };
  disk.aside(() => disk.database.beside(run));
  const { agent } = world;
  if (world.chance.is(0.8)) world.later(world.chance.spread(1, 1_000), () => agent.process.isAlive && agent.refresh());
}

function withWatched(world: World, work: (store: Store, jobId: JobId) => void): void {
  command(world, (store) => {
    const jobs = store.jobs.all().filter(({ state }) => state === 'watched');
    const job = world.chance.any(jobs);
    if (job !== undefined) work(store, job.jobId);
  });
}

function watch(world: World, jobId: JobId, known: readonly Job['tasks'][number]['id'][]): void {
  const tasks = known.length > 0 && world.chance.is(0.2) ? known : null;
  const order = { jobId, tasks, files: LIVE_FILE_NAMES, results: world.chance.is(0.8), settleAfterMs: null } as const;
  command(world, (store) =>
    store.transaction(() => store.jobs.watch({ ...order, source: 'command' }, world.time.wallMs)),
  );
}

/** As `agent watch`, in the process of the agent. */
export function order({ agent, time }: World, results: boolean, jobId = JOB): void {
  const order = { jobId, tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null } as const;
  agent.store.transaction(() => agent.store.jobs.watch({ ...order, source: 'command' }, time.wallMs));
  agent.refresh();
}

/** What `agent verify` finds, undefined if it fails. @throws Error if a file counts as here, unchanged, and is not */
export async function verified({ agent, mirrors, time, disk, service }: World, jobId: JobId) {
  const { store, config } = agent;
  const { signal } = new AbortController();
  const options = { mirrorDirectory: config.mirror.directory, store, remote: agent.beside(), signal };
  const found: Verified[] = [];
  const work = async () => {
    for await (const one of proofs(jobId, options)) found.push(one);
    return found;
  };
  const job = service.job(jobId);
  const before = listedOf(mirrors, job);
  const failed = () => undefined;
  const all = await time.passWhile(work().catch(failed), VERIFIED_WITHIN_MS, agent.process);
  // A deleted job has no files.
  if (all?.length === 0 || all?.every(isHere) !== true || job.state === 'Deleted') return all;
  for (const [name, { content, places }] of listedOf(mirrors, job)) {
    const isWhole = (at: string) => fs.existsSync(at) && fs.readFileSync(at).equals(content);
    if (before.get(name)?.content === content && !disk.aside(() => places.some(isWhole)))
      throw new Error(`verify finds all of job ${jobId} here, and ${name} is not`);
  }
  return all;
}

/** The agent stops within seconds, whatever hangs but a flush; one that stands still does so afterwards. */
export async function ended({ time, agent, disk }: World, end: Promise<void>): Promise<void> {
  const standsMs = Math.max(0, agent.process.stoppedUntil - time.passedMs);
  const flushesMs = disk.flushMs * (MAX_STEP_FLUSHES + disk.unflushed);
  await time.passWhile(end, standsMs + flushesMs + MAX_STOP_MS, agent.process);
}

/** The file of the configuration is written, or only read again: the agent follows by all of it. */
export async function reload(world: World, changes: Partial<Settings>, isAsked = world.chance.is(0.3)): Promise<void> {
  await world.configure({ ...world.settings, ...changes });
  const { agent } = world;
  if (!world.isUp) return;
  await ended(world, agent.reload(isAsked));
  if (agent.process.isAlive && !isDeepStrictEqual(agent.config, world.config))
    throw new Error(`the configuration is changed, and not in force: ${agent.refused ?? 'without a reason'}`);
}

/** A person wrote the secret anew, which the agent notices. */
export function mendSecret({ agent, directory, isUp, service }: World): void {
  service.refusals = new WeakMap();
  writeFileSync(path.join(directory, 'password'), 'hunter-secret-0502\n');
  if (isUp) agent.engine.agent.tryAgain(({ exitCode }) => exitCode === EXIT.signIn);
}
