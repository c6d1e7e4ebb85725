/**
 * Probes ids that may be those of a job's tasks (docs/servers.md 10.2): requests a live file of each, past every end of
 * it. A response, which holds no text, proves that the task belongs to the job; no response proves nothing. One call
 * probes many ids; how many the service accepts is measured and saved.
 *
 * A listing begins its names with the ids of specifications. Those of tasks are equal to them, or differ by a number
 * that is the same for a while, for one database counts both, and the ids of jobs.
 */
import { asJobtailError } from '../../errors.ts';
import type { JobId, LiveFileName, TaskId } from '../../job.ts';
import { inSlices } from '../../slices.ts';
import type { CapabilityStore } from '../live/text/encoding.ts';
import { BEHIND_EVERY_END, type Remote } from '../ports.ts';

/** What the service takes in one call, and what it does with ids that are no tasks of the job. */
const ENTRIES_HABIT = 'probe-entries';
const STRANGERS_HABIT = 'strange-tasks';

/** Whether an id that is no task of the job is known to fail the call it is in. */
export const strangersFail = (capabilities: CapabilityStore): boolean => capabilities.get(STRANGERS_HABIT) === 'fault';

/** Candidates per round, as far as the server's limit is known. */
export function maxCandidates(capabilities: CapabilityStore): number {
  return Math.min(MAX_CANDIDATES, MAX_CALLS * Number(capabilities.get(ENTRIES_HABIT) ?? MAX_ENTRIES));
}

/** So few always fit (docs/rest.md 2.1). A call that went through lets the next one have more. */
const FIRST_ENTRIES = 4;
const GROWTH = 4;
const MAX_ENTRIES = 256;
/** Limit for all calls of a round together. */
const MAX_CANDIDATES = 320;
const MAX_CALLS = 8;

interface ProbeOptions {
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly capabilities: CapabilityStore;
  /** Entries of a call, as far as polls have found out. */
  readonly maxEntries: number;
  /** The kind of the requested file. */
  readonly file: LiveFileName;
  /** All there can be. */
  readonly isEnough: (found: readonly TaskId[]) => boolean;
  readonly signal: AbortSignal;
}

export interface Probed {
  readonly found: readonly TaskId[];
  /** Candidates that were asked about, or that fail a call by themselves. */
  readonly asked: number;
  /** The service answers for whatever id it is asked, so its answers prove nothing. */
  readonly answersAll: boolean;
}

/** Asks about candidates, the first ones first. @throws JobtailError one that is not about what was asked */
export async function probe(candidates: Iterator<TaskId>, options: ProbeOptions): Promise<Probed> {
  const probing = new Probing(options);
  const next = (count: number) => {
    const taken: TaskId[] = [];
    while (taken.length < count && probing.asked + taken.length < MAX_CANDIDATES) {
      const { value, done } = candidates.next();
      if (done === true) break;
      taken.push(value);
    }
    return taken;
  };
  let waiting: TaskId[] = [];
  while (probing.calls < MAX_CALLS && !options.isEnough(probing.found)) {
    const { entries } = probing;
    waiting.push(...next(entries - waiting.length));
    const slice = waiting.slice(0, entries);
    if (slice.length === 0) break;
    const isDone = await probing.ask(slice);
    if (isDone) waiting = waiting.slice(slice.length);
  }
  const answersAll = await probing.answersStrangers();
  return { found: answersAll ? [] : probing.found, asked: probing.asked, answersAll };
}

class Probing {
  readonly found: TaskId[] = [];
  readonly #options: ProbeOptions;
  calls = 0;
  asked = 0;
  /** How many the next call has. */
  entries: number;
  #max: number;
  /** The length of a call that failed, as long as none with less went through. */
  #failed: number | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
    const { capabilities, maxEntries } = options;
    this.#max = Math.min(maxEntries, MAX_ENTRIES, Number(capabilities.get(ENTRIES_HABIT) ?? MAX_ENTRIES));
    this.entries = Math.min(FIRST_ENTRIES, this.#max);
  }

  /** Whether these need no other request in this round. */
  async ask(slice: readonly TaskId[]): Promise<boolean> {
    try {
      const answered = await this.#call(slice);
      this.found.push(...answered);
      if (slice.length > 1 || !strangersFail(this.#options.capabilities))
        this.#wentThrough(slice.length, answered.length < slice.length);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      if (slice.length > 1) {
        this.#failed = slice.length;
        this.entries = strangersFail(this.#options.capabilities) ? 1 : Math.floor(slice.length / 2);
        return false;
      }
      this.#learn(STRANGERS_HABIT, 'fault');
    }
    this.asked += slice.length;
    return true;
  }

  /** Where a call shows that strangers do no harm, a longer one that failed was too long. */
  #wentThrough(entries: number, hadStrangers: boolean): void {
    if (hadStrangers) this.#learn(STRANGERS_HABIT, 'left-out');
    if (hadStrangers && this.#failed !== undefined) {
      this.#max = entries;
      this.#learn(ENTRIES_HABIT, String(entries));
    }
    this.#failed = undefined;
    this.entries = Math.min(this.#max, entries * GROWTH);
  }

  /** Where all that was asked about was answered, a task that cannot be there shows whether that means anything. */
  async answersStrangers(): Promise<boolean> {
    const { capabilities } = this.#options;
    if (this.found.length === 0 || this.found.length < this.asked || capabilities.get(STRANGERS_HABIT) !== undefined)
      return false;
    try {
      const answered = await this.#call([STRANGER]);
      if (answered.length > 0) return true;
      this.#learn(STRANGERS_HABIT, 'left-out');
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      this.#learn(STRANGERS_HABIT, 'fault');
    }
    return false;
  }

  #learn(capability: string, value: string): void {
    const { capabilities } = this.#options;
    if (capabilities.get(capability) !== value) capabilities.set(capability, value);
  }

  /** Those of the tasks that are there. */
  async #call(tasks: readonly TaskId[]): Promise<TaskId[]> {
    const { remote, jobId, file, signal } = this.#options;
    this.calls += 1;
    const wanted = tasks.map((taskId) => ({ taskId, file, offset: BEHIND_EVERY_END }));
    const { parts } = await remote.readParts(jobId, wanted, signal);
    for (const { content } of parts) await content.release();
    return parts.map(({ taskId }) => taskId);
  }
}

/** No database counts so far. */
const STRANGER = String(2n ** 62n + 1n) as TaskId;

/** What is known of a job whose tasks are to be found. */
export interface Clues {
  readonly jobId: JobId;
  /** Specifications in the listing. */
  readonly specifications: readonly bigint[];
  /** What was last added to a specification's id to get that of its task. */
  readonly shift: bigint | undefined;
  /** Tasks that are known; they are no candidates. */
  readonly known: readonly TaskId[];
}

const LAST_ID = 2n ** 63n - 1n;
/** So far around what is known, in both directions. */
const REACH = 2_048n;
/** More of a listing are not looked at: no job has so many tasks. */
const MAX_SPECIFICATIONS = 10_000;
/** So many of them are asked about before anything else is: if none of these is right, the others hardly are. */
const FIRST_SPECIFICATIONS = 64;
/** Known tasks that have to fit what is concluded from them, and numbers that are tried for it. */
const MAX_WITNESSES = 32;
const MAX_SHIFTS = 256;

/** Every candidate once, the likeliest first. */
export function* candidatesOf({ jobId, specifications, shift = 0n, known }: Clues): Generator<TaskId, void> {
  const seen = new Set(known.map(BigInt));
  const fresh = function* (id: bigint) {
    if (id < 1n || id > LAST_ID || seen.has(id)) return;
    seen.add(id);
    yield String(id) as TaskId;
  };
  const shifted = specifications.map((id) => id + shift);
  for (const ids of [shifted, specifications]) for (const id of ids.slice(0, FIRST_SPECIFICATIONS)) yield* fresh(id);
  const concluded = shiftOfSome(specifications, known);
  if (concluded !== undefined) for (const id of specifications) yield* fresh(id + concluded);
  const anchors = [...ends(known.map(BigInt)), ...ends(shifted), ...ends(specifications), BigInt(jobId)];
  const others = [...shifted.slice(FIRST_SPECIFICATIONS), ...specifications.slice(FIRST_SPECIFICATIONS)].values();
  for (let distance = 0n; distance <= REACH; distance++) {
    for (const anchor of anchors) {
      yield* fresh(anchor + distance);
      yield* fresh(anchor - distance);
    }
    const { value } = others.next();
    if (value !== undefined) yield* fresh(value);
  }
  for (const id of others) yield* fresh(id);
}

/** The least and the greatest. */
function ends(ids: readonly bigint[]): bigint[] {
  const [first, ...others] = ids;
  if (first === undefined) return [];
  const least = others.reduce((a, b) => (b < a ? b : a), first);
  const greatest = others.reduce((a, b) => (b > a ? b : a), first);
  return [greatest, least];
}

/** The specifications that a listing names (docs/servers.md 4.2), each once, in its order. */
export async function specificationsIn(listed: Iterable<string>): Promise<bigint[]> {
  const found = new Set<string>();
  for await (const name of inSlices(listed)) {
    const [, digits] = /^\/*0*([1-9][0-9]{0,18})\//.exec(name) ?? [];
    if (digits !== undefined && found.size < MAX_SPECIFICATIONS) found.add(digits);
  }
  return [...found].map(BigInt);
}

/** What leads from each specification to its task; undefined if it is not the same for all of them. */
export function shiftBetween(specifications: readonly bigint[], tasks: readonly TaskId[]): bigint | undefined {
  const from = specifications.toSorted(byNumber);
  const to = tasks.map(BigInt).toSorted(byNumber);
  const [first = 0n, firstTask = 0n] = [from[0], to[0]];
  const shift = firstTask - first;
  const isSame = from.length === to.length && from.every((id, index) => to[index] === id + shift);
  return isSame && from.length > 0 ? shift : undefined;
}

/**
 * What leads from some of the specifications to all of the tasks that are known: the least there is, if there is any.
 */
function shiftOfSome(specifications: readonly bigint[], tasks: readonly TaskId[]): bigint | undefined {
  const step = Math.ceil(tasks.length / MAX_WITNESSES);
  const witnesses = tasks.filter((_, index) => index % step === 0).map(BigInt);
  const [first] = witnesses;
  if (first === undefined) return undefined;
  const all = new Set(specifications);
  const shifts = specifications.map((id) => first - id).sort((a, b) => byNumber(sizeOf(a), sizeOf(b)));
  return shifts.slice(0, MAX_SHIFTS).find((shift) => witnesses.every((task) => all.has(task - shift)));
}

const sizeOf = (shift: bigint) => (shift < 0n ? -shift : shift);
const byNumber = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
