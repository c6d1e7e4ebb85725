/** What the agent promises about the life of jobs (docs/guarantees.md), looked at after each change of its state. */
import fs from 'node:fs';
import path from 'node:path';
import type { JobId } from '../../../src/job.ts';
import { isRunning, type JobInformation, phaseOf } from '../../../src/job-information.ts';
import type { NotifyEvent } from '../../../src/notification.ts';
import { unprovenIn } from '../../../src/proven.ts';
import type { JobRow, WatchState } from '../../../src/store/rows.ts';
import type { SimulatedJob } from '../cluster.ts';
import type { Fault } from '../faults.ts';
import { filesLacking, hasNewest } from '../liveness.ts';
import type { Life } from './world.ts';

/** All that decides whether a full look is of use. */
const SIGNATURE = `SELECT group_concat(job_id || ' ' || jobs.state || ' ' || coalesce(information ->> '$.state', '') || ' '
    || coalesce(information ->> '$.startTime.text', ''))
  FROM jobs LEFT JOIN job_information USING (job_id)`;
/** A pass is given up by answers of the service, not by these. */
const OUTAGES = ['unreachable', 'timeout', 'interrupted', 'unavailable', 'tls', 'rate-limited'];
const DAY_MS = 24 * 60 * 60_000;
const ENDS = ['finished', 'failed', 'canceled'];

/** What was seen of one job in the state of the agent. */
class Seen {
  row: JobRow;
  /** A report since the job is watched, and since its last end, was of a job that is not over. */
  isActive = false;
  /** Runs of which the end is an event, and of which it may be one. */
  readonly ends = new Set<string>();
  readonly mayEnds = new Set<string>();
  /** Runs of which the start may be an event. */
  readonly starts = new Set<string>();
  /** The number of its run that was reported last. */
  run: number | undefined;
  /** The start of that run, if it was reported with its zone. */
  startedMs: number | null = null;
  /** How often it was watched after it had ended. */
  watches = 0;
  /** The number of runs when it was settled, and whether it was proven. */
  settledRuns = 0;
  isProven = false;
  followedAt = 0;
  /** A command, a configuration or another run is a reason to follow it. */
  mayFollow = false;
  mayEnd = false;

  constructor(row: JobRow) {
    this.row = row;
  }
}

interface Asked {
  readonly jobId: JobId;
  readonly kind: 'sync' | 'forget';
}

export class Promises {
  readonly #world: Life;
  readonly #seen = new Map<JobId, Seen>();
  readonly #events = new Map<string, NotifyEvent>();
  readonly #asked = new Map<number, Asked>();
  /** Jobs whose removal a command asked for. */
  readonly #forgettable = new Set<JobId>();
  /** The only job that may change. */
  #only: JobId | undefined;
  /** Jobs that commands ask for when a command takes the lock. */
  #commanded: ReadonlySet<JobId> = new Set();
  #signature: unknown;
  #startedAt = 0;
  /** Old jobs that retention removed. */
  removed = 0;
  kills = 0;

  constructor(world: Life) {
    this.#world = world;
  }

  started(only: JobId | undefined): void {
    // What the last process did is not of this one.
    this.look();
    this.#startedAt = this.#world.time.passedMs;
    this.#only = only;
    const { requests } = this.#world.store;
    // One that a former command waited for is followed until its request is not renewed for a minute.
    const open = (['pass', 'forget', 'follow'] as const).flatMap((kind) => requests.open(kind));
    this.#commanded = new Set(open.map(({ jobId }) => jobId));
    this.#signature = undefined;
  }

  killed(): void {
    this.kills += 1;
  }

  watched(jobId: JobId): void {
    const seen = this.#seen.get(jobId);
    if (seen === undefined) return;
    seen.mayFollow = true;
    if (seen.row.state === 'ended' || seen.row.state === 'settled') {
      seen.isActive = false;
      seen.watches += 1;
    }
  }

  /** A command, or a changed configuration, ends it. */
  unwatched(jobId: JobId): void {
    const seen = this.#seen.get(jobId);
    if (seen !== undefined) seen.mayEnd = true;
  }

  asked(requestId: number, jobId: JobId, kind: Asked['kind']): void {
    this.#asked.set(requestId, { jobId, kind });
    if (kind === 'forget') this.#forgettable.add(jobId);
  }

  /** For how long this process follows a job, in milliseconds. */
  followedMs(jobId: JobId): number {
    return this.#world.time.passedMs - Math.max(this.#startedAt, this.#seen.get(jobId)?.followedAt ?? 0);
  }

  isFollowed(jobId: JobId): boolean {
    return this.#seen.get(jobId)?.row.state === 'watched';
  }

  /** What counts as proven is here, also after it was settled. */
  check(): void {
    const { store, service, setting, mirrors } = this.#world;
    for (const [jobId, seen] of this.#seen) {
      if (seen.row.state !== 'settled' || store.jobs.get(jobId) === undefined) continue;
      seen.isProven = unprovenIn(store, jobId).length === 0;
      const job = service.jobs.get(jobId);
      if (!seen.isProven || job === undefined || job.runs.length > seen.settledRuns) continue;
      // Its files are removed first.
      const isBeingRemoved = setting.retention || this.#forgettable.has(jobId);
      if (isBeingRemoved && !fs.existsSync(path.join(mirrors, jobId))) continue;
      const lacks = filesLacking(this.#world, job, ({ hasEntry }) => hasEntry);
      if (lacks.length > 0) throw new Error(`job ${jobId} counts as proven: ${lacks.join('; ')}`);
    }
  }

  /** As `agent forget` decides. */
  mayForget(jobId: JobId): boolean {
    const { store } = this.#world;
    const state = store.jobs.get(jobId)?.state;
    return (state === 'settled' || state === 'ended') && unprovenIn(store, jobId).length === 0;
  }

  /** Requests that are not answered. */
  unanswered(): Asked[] {
    const { store } = this.#world;
    return [...this.#asked].flatMap(([id, asked]) => {
      const request = store.requests.get(id);
      return request === undefined || request.answer !== null ? [] : [asked];
    });
  }

  event(event: NotifyEvent): void {
    this.#events.set(event.id, event);
    const job = this.#world.service.jobs.get(event.jobId as JobId);
    if (job !== undefined && event.type === 'results-complete') this.#requireAll(job, 'results-complete is sent');
  }

  look(): void {
    const { store, disk } = this.#world;
    const signature = disk.database.column(SIGNATURE)[0];
    if (signature === this.#signature) return;
    this.#signature = signature;
    const rows = new Map(store.jobs.all().map((row) => [row.jobId, row]));
    for (const [jobId, seen] of this.#seen) if (!rows.has(jobId)) this.#removed(jobId, seen);
    for (const row of rows.values()) {
      const information = store.jobInformation.get(row.jobId)?.information;
      const before = this.#seen.get(row.jobId);
      const seen = before ?? new Seen(row);
      this.#seen.set(row.jobId, seen);
      this.#moved(seen, before?.row.state, row);
      if (information !== undefined) this.#reported(seen, row, information);
      seen.row = row;
    }
  }

  #moved(seen: Seen, before: WatchState | undefined, row: JobRow): void {
    const { jobId, state } = row;
    const job = this.#world.service.jobs.get(jobId);
    if (job === undefined || before === state) return;
    if (state === 'watched') seen.followedAt = this.#world.time.passedMs;
    const isLeft = this.#only !== undefined && this.#only !== jobId && !this.#commanded.has(jobId);
    if (isLeft && before !== undefined)
      throw new Error(`a command for job ${this.#only} makes job ${jobId}, which was ${before}, ${state}`);
    const isEnded = (state === 'ending' || state === 'ended') && (before === 'watched' || before === 'settled');
    if (isEnded && !seen.mayEnd) throw new Error(`job ${jobId} was ${before}, and is ${state} without a reason`);
    if (isEnded) seen.mayEnd = false;
    if (state === 'settled') this.#settled(seen, job, row);
    const isFollowedAgain = state === 'watched' && (before === 'settled' || before === 'ended');
    if (isFollowedAgain && !seen.mayFollow && (before === 'ended' || job.runs.length <= seen.settledRuns))
      throw new Error(`job ${jobId} was ${before}, and is followed again without a reason`);
    if (isFollowedAgain) seen.mayFollow = false;
  }

  #settled(seen: Seen, job: SimulatedJob, row: JobRow): void {
    const { store, service } = this.#world;
    seen.settledRuns = seen.run ?? job.runs.length;
    seen.mayFollow = false;
    const unproven = unprovenIn(store, job.id);
    seen.isProven = unproven.length === 0;
    const lacks = filesLacking(this.#world, job, ({ hasEntry }) => hasEntry);
    const what = `job ${job.id} is settled`;
    // It may run again, and the agent does not know yet.
    if (job.runs.length > seen.settledRuns) return;
    if (seen.isProven && lacks.length > 0) throw new Error(`${what} and counts as proven: ${lacks.join('; ')}`);
    const { error } = row;
    if (error !== null && OUTAGES.includes(error.code) && !service.faultsOf(job.id).some(isSilent))
      throw new Error(`${what} because of an outage: ${error.message}`);
    const faults = service.faultsOf(job.id, true);
    if (row.results && !job.isDeleted && faults.every(({ of }) => of === 'raw' || of === 'report' || of === 'revoke'))
      for (const lack of this.#wrongResults(job)) throw new Error(`${what}: ${lack}`);
    const isClean = !service.failed.has(job.id) && !job.isDeleted && this.canProve(job);
    if (isClean && unproven.length > 0)
      throw new Error(`${what}, nothing failed, and it is not proven: ${unproven.join('; ')}`);
  }

  /** Whether all that the job has can be compared. */
  canProve(job: SimulatedJob): boolean {
    const kinds = [...job.results.values()].map(({ kind }) => kind);
    const files = [...job.liveFiles()];
    const isShown = files.every(([, , { shownBytes }, { length }]) => (shownBytes ?? length) === length);
    return (
      isShown &&
      files.length > 0 &&
      job.namesTasks &&
      // Else nothing is listed, although there are live files.
      (job.listsLiveFiles || kinds.length > 0) &&
      // Only SSH shows that a link leads to a directory.
      !kinds.some((kind) => kind === 'unreadable' || kind === 'bad name' || kind === 'link to a directory')
    );
  }

  #removed(jobId: JobId, seen: Seen): void {
    this.#seen.delete(jobId);
    // It may be watched anew.
    for (const [id, event] of this.#events) if (event.jobId === jobId) this.#events.delete(id);
    const { row, isProven } = seen;
    if (this.#forgettable.delete(jobId)) return;
    this.removed += 1;
    if (Math.abs(this.#world.clockMs) > DAY_MS)
      throw new Error(`retention removed job ${jobId} by a clock that is ${this.#world.clockMs} ms ahead`);
    if (row.state !== 'settled' || !isProven)
      throw new Error(`retention removed job ${jobId}, which was ${row.state} and ${isProven ? '' : 'not '}proven`);
  }

  #reported(seen: Seen, row: JobRow, { state, startTime, endTime }: JobInformation): void {
    const isFollowed = row.state === 'watched' || row.state === 'ending';
    const job = this.#world.service.jobs.get(row.jobId);
    if (job === undefined || state === null || state === 'Deleted') return;
    const [before, startedMs] = [seen.run, seen.startedMs];
    seen.startedMs = startTime?.ms ?? null;
    seen.run = job.runsByText.get(startTime?.text ?? '') ?? 0;
    const run = `${seen.run} of watch ${seen.watches}`;
    if (!isFollowed) {
      // The list was on its way when the job was unwatched.
      seen.starts.add(run);
      seen.mayEnds.add(run);
      return;
    }
    if (phaseOf(state) === 'active') {
      seen.isActive = true;
      if (isRunning(state)) seen.starts.add(run);
    } else if (seen.isActive || (before !== undefined && before !== seen.run)) {
      // It was active since it is watched, or ran again: that is known if both starts have their zones.
      const isKnown = seen.isActive || (startedMs !== null && seen.startedMs !== null);
      seen.isActive = false;
      // Of a job that is watched again, the stored report may be older than that.
      (seen.watches === 0 && isKnown ? seen.ends : seen.mayEnds).add(run);
      seen.starts.add(run);
    } else if (row.source === 'mine' || (endTime?.ms != null && endTime.ms >= row.watchedAt)) {
      seen.mayEnds.add(run);
      seen.starts.add(run);
    }
  }

  /** Each end that was seen is an event, once; nothing else is. */
  checkEvents(): void {
    for (const [jobId, { ends, mayEnds, starts }] of this.#seen) {
      const events = [...this.#events.values()].filter((event) => event.jobId === jobId);
      const count = (types: readonly string[]) =>
        events.filter(({ type }) => types.includes(type)).reduce((sum, one) => sum + one.count, 0);
      const [ended, begun] = [count(ENDS), count(['started'])];
      const all = new Set([...ends, ...mayEnds]);
      const what = `job ${jobId}: ${ended} events of an end`;
      if (ended > all.size) throw new Error(`${what}, and ${all.size} ends were seen`);
      if (ended < ends.size) throw new Error(`${what}, and ${ends.size} ends were seen after the job was`);
      if (begun > starts.size)
        throw new Error(`job ${jobId}: ${begun} events of a start, and ${starts.size} were seen`);
    }
  }

  #wrongResults(job: SimulatedJob): string[] {
    const { store, mirrors } = this.#world;
    return [...job.results].flatMap(([name, result]) => {
      const state = store.results.get(job.id, name)?.state;
      if (result.kind !== 'file' || state !== 'synced') return [];
      return hasNewest(mirrors, job.id, name, result) ? [] : [`${name} is synced, and old`];
    });
  }

  #requireAll(job: SimulatedJob, what: string): void {
    const { disk } = this.#world;
    const lacks = disk.aside(() => filesLacking(this.#world, job));
    if (lacks.length > 0 && job.runs.length <= (this.#seen.get(job.id)?.settledRuns ?? 0))
      throw new Error(`job ${job.id}: ${what}: ${lacks.join('; ')}`);
  }
}

const isSilent = ({ code }: Fault) => code === 'silent';
