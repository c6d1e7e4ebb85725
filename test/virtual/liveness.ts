/** What becomes true once all is healed but one part, within which time, and that the broken part says so. */
import fs from 'node:fs';
import path from 'node:path';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { patterned } from '../../src/agent/patterns.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { type JobReport, type Report, reportOf } from '../../src/cli/show/status-report.ts';
import { detail, overview } from '../../src/cli/show/status-table.ts';
import type { Config } from '../../src/config/config.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { JobRow } from '../../src/store/rows.ts';
import { detailOf } from '../../src/view/events/jobs.ts';
import { JobStores } from '../../src/view/fleet.ts';
import type { SimulatedJob } from './cluster.ts';
import { mendSecret } from './commands.ts';
import type { Fault } from './faults.ts';
import { isReadable } from './safety.ts';
import { differenceOf } from './same-keys.ts';
import type { World } from './world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Live files, ends of jobs and answers to commands: a file that failed by itself waits for half an hour. */
const LIVE_BOUND_MS = 45 * MINUTE_MS;
/** Results: one that failed, or that changes rarely, waits for an hour. */
const RESULTS_BOUND_MS = LIVE_BOUND_MS + 75 * MINUTE_MS;
/** A result on which the service hung twice waits for a day. */
const HUNG_BOUND_MS = 26 * HOUR_MS;

/** A part that stays broken. */
export interface Broken {
  readonly what: string;
  /** Undefined if it is of no job. */
  readonly jobId: JobId | undefined;
  /** Breaks it from now on. */
  readonly begin: (world: World) => void;
  /** How often that was met. */
  readonly hits: (world: World) => number;
}

function forEver(fault: Omit<Fault, 'share' | 'until'>): Pick<Broken, 'begin' | 'hits'> {
  const broken: Fault = { ...fault, share: 1, until: Number.POSITIVE_INFINITY };
  return { begin: ({ service }) => void service.faults.push(broken), hits: () => broken.hits ?? 0 };
}

/** Without results, only a command needs the list while a job runs, and has its answer. */
function unlistedResults(jobId: JobId): Pick<Broken, 'begin' | 'hits'> {
  const { begin, hits } = forEver({ code: 'malformed', jobId, operations: ['ListChangedFilesForJob'] });
  const needsList = ({ agent, service }: World) =>
    agent.store.jobs.get(jobId)?.results === true || service.jobs.get(jobId)?.isOver === true;
  return { begin, hits: (world) => (needsList(world) ? hits(world) : 0) };
}

/** One of the parts of a world that can stay broken. */
export function chooseBroken(world: World): Broken | undefined {
  const { chance, service, mirrors } = world;
  const jobId = chance.any([...service.jobs.keys()]);
  if (jobId === undefined) return undefined;
  const under = path.join(mirrors, jobId);
  const kinds: Record<string, Pick<Broken, 'begin' | 'hits'>> = {
    'the files of a job cannot be written': {
      begin: ({ disk }) => {
        disk.broken = { under, code: 'EIO', hits: 0 };
      },
      hits: ({ disk }) => disk.broken?.hits ?? 0,
    },
    'the live files of a job cannot be read': forEver({
      ...{ code: 'malformed', jobId, operations: ['DownloadPartsOfJobFilesFromCluster'] },
    }),
    'the calls for a job hang': forEver({ code: 'silent', jobId, operations: ['DownloadPartsOfJobFilesFromCluster'] }),
    'the results of a job are not listed': unlistedResults(jobId),
    'a result cannot be downloaded': forEver({ code: 'http-status', jobId, file: '/out/result-1.dat' }),
  };
  const what = chance.among([...Object.keys(kinds), ...OF_NO_JOB.map((one) => one.what)]);
  return OF_NO_JOB.find((one) => one.what === what) ?? { what, jobId, ...(kinds[what] as (typeof kinds)[string]) };
}

const BROKEN_RECEIVER: Broken = {
  what: 'the receiver of notifications is silent',
  jobId: undefined,
  begin({ receiver }) {
    receiver.state = 'silent';
    receiver.missed = 0;
  },
  hits: ({ receiver }) => receiver.missed,
};
/** Nothing is complete then, and notifications are sent all the same. */
const FULL_MIRRORS: Broken = {
  what: 'the disk of the mirrors is full',
  jobId: undefined,
  begin({ disk }) {
    disk.full = 'of mirrors';
    disk.fullHits = 0;
  },
  hits: ({ disk }) => disk.fullHits,
};
const OF_NO_JOB: readonly Broken[] = [BROKEN_RECEIVER, FULL_MIRRORS];

/** Everything works again, but for one part. */
export async function heal(world: World, broken?: Broken): Promise<void> {
  const { service, disk, receiver } = world;
  world.note(`everything is healed${broken === undefined ? '' : `, but ${broken.what} (${broken.jobId ?? 'no job'})`}`);
  world.agent.line?.explain();
  if (disk.isDead) await world.kill(true);
  service.faults = [];
  disk.heal();
  receiver.state = 'takes';
  await world.pass(Math.max(0, world.agent.process.stoppedUntil - world.time.passedMs));
  broken?.begin(world);
  service.refusesSignIn = false;
  if (!world.isUp) world.start();
  // A refused password is not sent again before it was changed, or an hour has passed.
  mendSecret(world);
}

/** Lets time pass until everything but the broken part is complete. @throws Error what is not after the bound */
export const becomesComplete = (world: World, broken?: Broken) => becomesTrue(world, () => lacking(world, broken));

export async function becomesTrue(world: Pick<World, 'time' | 'pass'>, lacking: () => readonly Lack[]): Promise<void> {
  const begunAt = world.time.passedMs;
  for (;;) {
    await world.pass(MINUTE_MS);
    const takenMs = world.time.passedMs - begunAt;
    const late = lacking().filter(({ boundMs }) => boundMs < takenMs);
    if (late.length > 0)
      throw new Error(`after ${takenMs / MINUTE_MS} minutes: ${late.map(({ what }) => what).join('; ')}`);
    if (lacking().length === 0) return;
  }
}

/** Polls wait for their longest interval again after so long, results for theirs. */
const CALM_MS = 2 * HOUR_MS;
/** Calls an hour for job states, and for what a job without news costs beside its polls and listings. */
const STATES_AN_HOUR = 130;
const SEARCHES_AN_HOUR = 20;

/** When all is complete and nothing happens, a job costs its polls and its listings, and job states a call a half minute. */
export async function isQuiet(world: World): Promise<void> {
  const { service, settings } = world;
  await world.pass(CALM_MS);
  const before = service.calls;
  await world.pass(HOUR_MS);
  const calls = service.calls - before;
  const ofJob = 3_600 / settings.maxIntervalSeconds + 3_600 / Math.min(600, settings.resultsIntervalSeconds);
  const allowed = STATES_AN_HOUR + service.jobs.size * (1.5 * ofJob + SEARCHES_AN_HOUR);
  if (calls > allowed) throw new Error(`${calls} calls in an hour in which nothing happens, ${allowed} are explained`);
}

export interface Lack {
  readonly what: string;
  readonly boundMs: number;
}

/** One agent, and what it is to have in the end. */
export type Complete = Pick<World, 'agent' | 'service' | 'mirrors' | 'disk' | 'receiver'>;

/** What is not as it is to be in the end. */
export function lacking(world: Complete, broken?: Broken): Lack[] {
  const { store } = world.agent;
  if (broken === FULL_MIRRORS) return lacksOfOutbox(world);
  const rows = store.jobs.all();
  const lacks = rows
    .filter(({ jobId }) => jobId !== broken?.jobId)
    .flatMap((row) => world.disk.aside(() => lacksOf(world, row)));
  return [...lacks, ...lacksOfRequests(world, broken), ...lacksOfRule(world), ...lacksOfOutbox(world, broken)];
}

function lacksOfRequests({ agent: { store } }: Complete, broken?: Broken): Lack[] {
  const requests = [...store.requests.open('pass'), ...store.requests.open('forget')];
  const others = requests.filter(({ jobId }) => jobId !== broken?.jobId);
  return others.map(({ jobId, kind }) => live(`${kind} of ${jobId} is not answered`));
}

const live = (what: string): Lack => ({ what, boundMs: LIVE_BOUND_MS });

function lacksOf(world: Complete, row: JobRow): Lack[] {
  const { jobId, state, error } = row;
  const job = world.service.jobs.get(jobId);
  if (job === undefined) return [];
  const name = `job ${jobId}`;
  // What the service did, not what the agent concluded.
  const deleted = job.state === 'Deleted';
  if (state === 'ended') return [];
  if (state === 'ending') return [live(`${name} is not ended`)];
  if (state === 'watched' && (job.isOver || deleted)) return [live(`${name} is over, and not settled`)];
  const resumes = state === 'settled' && !job.isOver && !deleted;
  if (resumes) return [live(`${name} runs again, and is not followed`)];
  if (error !== null && state === 'watched') return [live(`${name} still has the error ${error.code}`)];
  if (deleted) return [];
  const isSettled = state === 'settled';
  return [...lacksOfMirrors(world, job, isSettled), ...(row.results ? lacksOfResults(world, job, isSettled) : [])];
}

function lacksOfMirrors({ agent, mirrors }: Complete, job: SimulatedJob, isSettled: boolean): Lack[] {
  const rows = agent.store.liveFiles.ofJob(job.id);
  const isSearched = agent.store.taskSearches.get(job.id) !== undefined;
  return job.tasks.flatMap(({ id: taskId, files }) =>
    LIVE_FILE_NAMES.flatMap((file) => {
      const { content } = files[file];
      const row = rows.find((one) => one.taskId === taskId && one.file === file);
      if (content === undefined || (row === undefined && !isSearched)) return [];
      const name = `${job.id}/${taskId}/${file}`;
      if (row === undefined) return [live(`${name} is not followed`)];
      // What failed when its job was settled says so, and waits for a command; what was left out then is no file.
      if (isSettled && (row.error !== null || row.unverified !== null || files[file].isHidden)) return [];
      if (row.error !== null) return [live(`${name} has the error ${row.error.code}`)];
      const at = mirrorPath(mirrors, job.id, row);
      const bytes = fs.existsSync(at) ? fs.readFileSync(at) : Buffer.alloc(0);
      if (!bytes.equals(content)) return [live(`${name} has ${bytes.length} of ${content.length} bytes`)];
      if (row.position !== bytes.length)
        return [live(`${name} has committed ${row.position} of ${bytes.length} bytes`)];
      return [];
    }),
  );
}

function lacksOfResults({ agent, mirrors }: Complete, job: SimulatedJob, isSettled: boolean): Lack[] {
  const isGivenUp = agent.store.jobs.get(job.id)?.error !== null;
  const directory = resultsDirectory(mirrors, job.id);
  return [...job.results].flatMap(([name, { contents }]) => {
    const row = agent.store.results.get(job.id, name);
    // What was left out, or failed, when its job settled stays so; without a last pass, what was fetched may be old.
    const isLeft = isSettled && (row?.state === 'left-out' || row?.state === 'failed' || isGivenUp);
    if (isSettled && row?.state === 'in-flux')
      return [{ what: `${job.id}: the result ${name} of a settled job is in flux`, boundMs: RESULTS_BOUND_MS }];
    if (isLeft || !isWanted(agent.config, name, contents.at(-1)?.length ?? 0)) return [];
    const boundMs = (row?.hangs ?? 0) > 0 ? HUNG_BOUND_MS : RESULTS_BOUND_MS;
    const file = path.join(directory, name);
    const bytes = fs.existsSync(file) ? fs.readFileSync(file) : undefined;
    if (bytes === undefined || contents.at(-1)?.equals(bytes) !== true)
      return [
        { what: `${job.id}: the result ${name} is ${bytes === undefined ? 'not there' : 'an old one'}`, boundMs },
      ];
    if (row?.state !== 'synced' && (isSettled || row?.state !== 'in-flux'))
      return [{ what: `${job.id}: the result ${name} is ${row?.state}`, boundMs }];
    return [];
  });
}

function isWanted({ results }: Config, name: string, bytes: number): boolean {
  const { include, exclude, maxFileBytes } = results;
  const at = name.slice(1);
  return patterned(include)(at) && !patterned(exclude)(at) && bytes <= (maxFileBytes ?? Number.POSITIVE_INFINITY);
}

/** As many jobs as the rule allows are followed, of those that it is for. */
function lacksOfRule({ agent, service }: Complete): Lack[] {
  const { store } = agent;
  const rule = store.watchMine.inForce();
  if (rule === undefined || store.jobs.followedByRule() >= rule.maxJobs) return [];
  const known = store.jobs.known();
  const left = [...service.jobs.values()].filter(({ id, isOver }) => !isOver && !known.has(id));
  return left.map(({ id }) => live(`job ${id} is not followed, though the rule is for it`));
}

/** A failed delivery is tried again within that. */
const MAX_DELIVERY_PAUSE_MS = 15 * MINUTE_MS;

/** All that is to be sent was sent. */
function lacksOfOutbox({ agent, receiver }: Complete, broken?: Broken): Lack[] {
  if (!agent.config.notify.length || broken === BROKEN_RECEIVER || receiver.state !== 'takes') return [];
  // After the wall clock was set back, a delivery is late (docs/guarantees.md).
  const latest = agent.clock.now() + MAX_DELIVERY_PAUSE_MS;
  const waiting = agent.store.outbox.all().filter(({ dueAt }) => dueAt !== null && dueAt <= latest);
  return waiting.length === 0 ? [] : [live(`${waiting.length} notifications wait`)];
}

const SAID_WITHIN_MS = 30 * MINUTE_MS;
/** What was said once is said at this many of the next looks, one a minute. */
const LOOKS = 20;
const MIN_SAID = 16;

/** What is broken and was met says so, and goes on: in the row of its job, of one of its files, of a result, of a delivery. */
export async function requireSaysSo(world: World, broken: Broken): Promise<void> {
  // What the pass of a command meets, its answer says, and nothing else does until it is met again.
  await becomesTrue(world, () => lacksOfRequests(world));
  const before = broken.hits(world);
  const isMet = () => broken.hits(world) > before;
  const end = world.time.passedMs + SAID_WITHIN_MS;
  while (isMet() && !saysSo(world, broken)) {
    if (world.time.passedMs > end) throw new Error(`nothing says that ${broken.what} (${broken.jobId})`);
    await world.pass(MINUTE_MS);
  }
  let said = 0;
  for (let look = 0; look < LOOKS; look += 1) {
    if (!isMet() || saysSo(world, broken)) said += 1;
    await world.pass(MINUTE_MS);
  }
  if (said < MIN_SAID) throw new Error(`that ${broken.what} (${broken.jobId}) is said at ${said} of ${LOOKS} looks`);
}

function saysSo({ agent, disk }: World, broken: Broken): boolean {
  const { jobs, notify } = disk.aside(() => shownBy(agent));
  if (broken === BROKEN_RECEIVER) return notify.waiting + notify.givenUp > 0;
  const followed = jobs.filter(({ state }) => state === 'watched' || state === 'ending');
  const { jobId } = broken;
  if (jobId !== undefined) return followed.every((job) => job.jobId !== jobId || isSaidOf(job));
  return followed.length === 0 || followed.some(isSaidOf);
}

const isSaidOf = ({ error, files, results }: JobReport) =>
  error !== null || files.some((file) => file.error !== null) || results.notSynced.length > 0;

/** Of a terminal. */
const TERMINAL = 120;

/** What `agent status`, and `agent status JOB` of each job, show. @throws Error if a page does not show a value */
export function shownBy({ config, store }: World['agent']): Report {
  const report = reportOf(config, store, undefined);
  const ofJobs = report.jobs.map(({ jobId }) => reportOf(config, store, [jobId]));
  const pages = [overview(report, TERMINAL), ...ofJobs.map((one) => detail(one, TERMINAL))];
  for (const page of pages) if (!isReadable(page)) throw new Error(`a value is not shown:\n${page}`);
  const stores = new JobStores(() => store, null);
  for (const { jobs } of ofJobs)
    for (const job of jobs) {
      const difference = differenceOf(detailOf(stores, job.jobId), job);
      if (difference !== undefined) throw new Error(`the view and --json differ in ${job.jobId}${difference}`);
    }
  return { ...report, jobs: ofJobs.flatMap(({ jobs }) => jobs) };
}
