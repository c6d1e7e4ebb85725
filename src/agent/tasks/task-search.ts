/**
 * The search for the tasks of one job by the file-transfer service alone. A task without a file is not visible, so the
 * search is repeated with growing pauses, and at once when the listing names other specifications. Found tasks are
 * saved, and never removed.
 */
import { isDeepStrictEqual } from 'node:util';
import { nominalPause } from '../../back-off.ts';
import { compareIds, type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../job.ts';
import { SHIFT_CAPABILITY } from '../../live-paths.ts';
import { inSlices, slicesOf } from '../../slices.ts';
import type { FoundBy, TaskSearchRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { Log } from '../ports/host.ts';
import type { CapabilityStore, Remote } from '../ports/server.ts';
import {
  type Clues,
  candidatesOf,
  maxCandidates,
  type Probed,
  probe,
  shiftBetween,
  specificationsIn,
  strangersFail,
} from './probe.ts';

interface TaskSearchOptions extends FoundTasksOptions {
  readonly clock: Clock;
  readonly batchLimit: { readonly files: number };
  readonly remote: Remote;
  /** Whether there is a job service: then configuration does not help to find further tasks. */
  readonly hasJobService: boolean;
}

interface ProbeRound {
  readonly found: number;
  /** Time until the next round; null if no task is known to be missing. */
  readonly nextMs: number | null;
}

const MAX_PAUSE_MS = 10 * 60_000;
const PAUSES = { firstMs: 5_000, maxMs: MAX_PAUSE_MS };
/** Rounds without success, of a job that lists files, before a warning. */
const REPORTED_AFTER_ROUNDS = 4;

export class TaskSearch {
  readonly #jobId: JobId;
  readonly #options: TaskSearchOptions;
  #specifications: readonly bigint[] | undefined;
  /** How many of the less likely candidates were probed. */
  #passed = 0;
  /** Decides which file the next round requests. */
  #turn = 0;
  /** How often all candidates were probed. */
  #cycles = 0;

  constructor(jobId: JobId, options: TaskSearchOptions) {
    this.#jobId = jobId;
    this.#options = options;
  }

  async listed(names: readonly string[]): Promise<boolean> {
    const before = this.#specifications;
    const found = await specificationsIn(names);
    this.#specifications = found;
    if (before === undefined) return true;
    const known = new Set(before);
    const isAnother = found.length !== known.size || found.some((id) => !known.has(id));
    if (isAnother) [this.#passed, this.#turn] = [0, 0];
    return isAnother;
  }

  /** Runs one round. `isListed`: whether syncs of results pass on the listed names. @throws JobtailError */
  async probe(isListed: boolean, signal: AbortSignal): Promise<ProbeRound> {
    const { store, clock, remote, hasJobService } = this.#options;
    const { capabilities } = store;
    const { taskSearches } = store;
    const jobId = this.#jobId;
    const nothing = { found: 0, nextMs: null };
    if (taskSearches.get(jobId) === undefined) return nothing;
    if (this.#specifications === undefined || !isListed)
      this.#specifications = await specificationsIn(await remote.listChangedFiles(jobId, signal));
    const specifications = this.#specifications;
    const known = taskSearches.knownTasks(jobId);
    const probed = isComplete(specifications, known)
      ? NOTHING_PROBED
      : await this.#probe({ jobId, specifications, shift: shiftOf(capabilities), known }, signal);
    // The request may have changed in the meantime.
    const search = taskSearches.get(jobId);
    if (search === undefined) return nothing;
    const found = await keepFound({ ...search, foundBy: 'probes' }, probed.found, this.#options);
    // The order of candidates is different now.
    if (found > 0) [this.#passed, this.#turn] = [0, 0];
    const tasks = taskSearches.knownTasks(jobId);
    const shift = found > 0 ? shiftBetween(specifications, tasks) : undefined;
    if (shift !== undefined) capabilities.set(SHIFT_CAPABILITY, String(shift));
    const isOver = isComplete(specifications, tasks);
    const fruitless = found > 0 || isOver ? 0 : search.fruitless + 1;
    const pauseMs = nominalPause(fruitless, PAUSES);
    // Without syncs of results, the listing is still read now and then.
    const nextSearchAt = isOver ? null : clock.now() + pauseMs;
    const nextMs = !isOver ? pauseMs : isListed ? null : MAX_PAUSE_MS;
    const isMissing = !isOver && specifications.length > 0;
    const reason = probed.answersAll ? ANSWERS_ALL : isMissing && fruitless >= REPORTED_AFTER_ROUNDS ? NOT_FOUND : null;
    const hint = reason === null ? null : adviceFor(reason, hasJobService);
    const foundBy = found > 0 ? 'probes' : search.foundBy;
    this.#keep({ ...search, foundBy, fruitless, hint, nextSearchAt }, search.hint);
    return { found, nextMs };
  }

  async #probe(clues: Clues, signal: AbortSignal): Promise<Probed> {
    const { remote, batchLimit } = this.#options;
    const { capabilities } = this.#options.store;
    const { specifications, known } = clues;
    const missing = specifications.length - known.length;
    const together = {
      eachTime: Math.min(EACH_TIME, maxCandidates(capabilities) / 2),
      round: Number.POSITIVE_INFINITY,
    };
    const window = strangersFail(capabilities) ? BY_ITSELF : together;
    const candidates = this.#next(candidatesOf(clues), window);
    const probed = await probe(candidates, {
      jobId: this.#jobId,
      remote,
      capabilities,
      signal,
      file: this.#fileOfRound(),
      maxEntries: batchLimit.files,
      isEnough: (found) => missing > 0 && found.length >= missing,
    });
    this.#turn += 1;
    this.#passed += Math.max(0, probed.asked - window.eachTime);
    if (candidates.next().done === true) {
      // Each candidate gets another file in the next cycle, however many rounds this one had.
      this.#cycles += 1;
      [this.#passed, this.#turn] = [0, this.#cycles];
    }
    return probed;
  }

  #keep(search: TaskSearchRow, hintBefore: string | null): void {
    const { store, clock, log } = this.#options;
    const { jobId, hint } = search;
    store.transaction(() => store.taskSearches.save({ ...search, searchedAt: clock.now() }));
    if (hint !== null && hintBefore === null) log.warn({ jobId, hint }, 'tasks not found');
  }

  /** The likeliest candidates, then those that earlier rounds did not reach. */
  *#next<T>(candidates: Iterable<T>, { eachTime, round }: ProbeWindow): Generator<T, void> {
    const behind = eachTime + this.#passed;
    let at = 0;
    for (const candidate of candidates) {
      if (at >= round) break;
      if (at < eachTime || at >= behind) yield candidate;
      at += 1;
    }
  }

  /** Most tasks have a standard output first; every other round requests another file. */
  #fileOfRound(): LiveFileName {
    const [first, ...others] = LIVE_FILE_NAMES;
    return this.#turn % 2 === 0 ? first : (others[((this.#turn - 1) / 2) % others.length] ?? first);
  }
}

interface ProbeWindow {
  /** The likeliest candidates are probed in each round: they may have a file by now. */
  readonly eachTime: number;
  /** Maximum candidates, before the round starts at the first one again. */
  readonly round: number;
}

const EACH_TIME = 20;
/** Where each candidate costs a call. */
const BY_ITSELF: ProbeWindow = { eachTime: 0, round: 64 };

const NOTHING_PROBED: Probed = { found: [], asked: 0, answersAll: false };

const isComplete = (specifications: readonly bigint[], tasks: readonly TaskId[]) =>
  tasks.length > 0 && tasks.length >= specifications.length;

const NOT_FOUND = 'their ids follow no rule that is known';
const ANSWERS_ALL = 'the service answers for whatever id';

const adviceFor = (reason: string, hasJobService: boolean) =>
  `name them (agent watch JOB --task ID)${hasJobService ? '' : ', or set service.jobsUrl'}: ${reason}`;

function shiftOf(capabilities: CapabilityStore): bigint | undefined {
  const shift = capabilities.get(SHIFT_CAPABILITY);
  return shift === undefined ? undefined : BigInt(shift);
}

interface FoundTasksOptions {
  readonly store: Store;
  readonly log: Log;
  readonly onFound?: ((tasks: number, by: FoundBy) => void) | undefined;
}

const MAX_TASKS = 10_000;
const MAX_NAMED = 5;
/** Tasks added in one step, which blocks the process. */
const AT_A_TIME = 500;

/** Adds the live files of new tasks; returns how many are new. After a kill, the rest is found again. */
async function keepFound(
  search: TaskSearchRow,
  tasks: readonly TaskId[],
  { store, log, onFound }: FoundTasksOptions,
): Promise<number> {
  const { jobId, foundBy } = search;
  const known = new Set(store.taskSearches.knownTasks(jobId));
  const room = Math.max(0, MAX_TASKS - known.size);
  const fresh = [...new Set(tasks)].filter((task) => !known.has(task)).sort(compareIds);
  const taken = fresh.slice(0, room);
  for await (const some of inSlices(slicesOf(taken, AT_A_TIME)))
    store.transaction(() => store.taskSearches.addTasks(search, some));
  if (taken.length === 0) return 0;
  log.info({ jobId, found: taken.length, by: foundBy, tasks: named(taken) }, 'tasks found');
  if (taken.length < fresh.length) log.warn({ jobId, ignored: fresh.length - taken.length }, 'too many tasks');
  onFound?.(taken.length, foundBy ?? 'probes');
  return taken.length;
}

const named = (tasks: readonly TaskId[]) => (tasks.length > MAX_NAMED ? [...tasks.slice(0, MAX_NAMED), '...'] : tasks);

/** Stores the tasks that the job service names, unless the request names its own; returns how many are new. */
export async function saveReported(
  jobId: JobId,
  tasks: readonly TaskId[],
  options: FoundTasksOptions & { readonly clock: Clock },
): Promise<number> {
  const { store, clock } = options;
  const search = store.taskSearches.get(jobId);
  if (search === undefined || tasks.length === 0) return 0;
  const reported = { ...search, foundBy: 'job-service', fruitless: 0, nextSearchAt: null, hint: null } as const;
  const found = await keepFound(reported, tasks, options);
  if (found > 0 || !isDeepStrictEqual(reported, search))
    store.transaction(() => store.taskSearches.save({ ...reported, searchedAt: clock.now() }));
  return found;
}
