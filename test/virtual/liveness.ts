/** What becomes true once all is healed, within which time; and that all views of it agree. */
import fs from 'node:fs';
import path from 'node:path';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { patterned } from '../../src/agent/patterns.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { detail, overview } from '../../src/cli/show/status-table.ts';
import type { Config } from '../../src/config/config.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import type { JobRow } from '../../src/store/rows.ts';
import { detailOf } from '../../src/view/events/jobs.ts';
import { JobStores } from '../../src/view/fleet.ts';
import type { SimulatedJob } from './cluster.ts';
import { mendSecret } from './commands.ts';
import { isReadable } from './safety.ts';
import type { World } from './world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Live files, ends of jobs and answers to commands: a file that failed by itself waits for half an hour. */
const LIVE_BOUND_MS = 45 * MINUTE_MS;
/** Results: one that failed, or that changes rarely, waits for an hour. */
const RESULTS_BOUND_MS = LIVE_BOUND_MS + 75 * MINUTE_MS;
/** A result on which the service hung twice waits for a day. */
const HUNG_BOUND_MS = 26 * HOUR_MS;

/** Everything works again. */
export async function heal(world: World): Promise<void> {
  const { service, disk, receiver } = world;
  world.note('everything is healed');
  world.agent.line?.explain();
  service.faults = [];
  disk.heal();
  receiver.state = 'takes';
  mendSecret(world);
}

/** Lets time pass until everything is complete. @throws Error what is not after the bound */
export const becomesComplete = (world: World) => becomesTrue(world, () => lacking(world));

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

export interface Lack {
  readonly what: string;
  readonly boundMs: number;
}

/** One agent, and what it is to have in the end. */
export type Complete = Pick<World, 'agent' | 'service' | 'mirrors' | 'disk' | 'receiver'>;

/** What is not as it is to be in the end. */
export function lacking(world: Complete): Lack[] {
  const { store } = world.agent;
  const lacks = store.jobs.all().flatMap((row) => world.disk.aside(() => lacksOf(world, row)));
  const requests = [...store.requests.open('pass'), ...store.requests.open('forget')];
  const unanswered = requests.map(({ jobId, kind }) => live(`${kind} of ${jobId} is not answered`));
  return [...lacks, ...unanswered, ...lacksOfRule(world), ...lacksOfOutbox(world)];
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
export function lacksOfOutbox({ agent, receiver }: Complete): Lack[] {
  if (!agent.config.notify.length || receiver.state !== 'takes') return [];
  // After the wall clock was set back, a delivery is late (docs/guarantees.md).
  const latest = agent.clock.now() + MAX_DELIVERY_PAUSE_MS;
  const waiting = agent.store.outbox.all().filter(({ dueAt }) => dueAt !== null && dueAt <= latest);
  return waiting.length === 0 ? [] : [live(`${waiting.length} notifications wait`)];
}

/** Of a terminal. */
const TERMINAL = 120;

/** What `agent status`, and `agent status JOB` of each job, show. @throws Error if a page does not show a value */
export function checkShown({ config, store }: World['agent']): void {
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
}

/** Where two reports of one thing differ, in a key that both have, as `.tasks.found: 1, 2`; undefined if they do not. */
function differenceOf(one: unknown, other: unknown): string | undefined {
  if (!isObject(one) || !isObject(other)) return Object.is(one, other) ? undefined : `: ${one}, ${other}`;
  if (Array.isArray(one) && Array.isArray(other) && one.length !== other.length)
    return `.length: ${one.length}, ${other.length}`;
  for (const key of Object.keys(one)) {
    const difference = key in other ? differenceOf(one[key], other[key]) : undefined;
    if (difference !== undefined) return `.${key}${difference}`;
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
