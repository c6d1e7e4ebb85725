/**
 * Finds tasks of a job by probing ids (docs/dev/servers.md 10.2). A probe requests a live file of an id, at an offset past the
 * end of any file. If the response has an entry for the id, it is a task of the job, unless the service answers every id
 * (`answersAll`). A missing entry proves nothing. One call probes many ids; the maximum that the server accepts is
 * detected and stored. Listed names begin with the id of a task specification. A task id equals that of its
 * specification, or differs from it by a shift that stays the same for a while: one database numbers both, and jobs.
 */
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { BEHIND_EVERY_END, type JobId, type LiveFileName, type TaskId } from '../../job.ts';
import { inSlices } from '../../slices.ts';
import type { CapabilityStore, Remote } from '../ports/server.ts';

/** Names of stored capabilities: maximum ids in one call; how the server answers ids of other jobs. */
const ENTRIES_CAPABILITY = 'probe-entries';
const STRANGERS_CAPABILITY = 'strange-tasks';

/** Whether an id that is no task of the job fails the whole call. */
export const strangersFail = (capabilities: CapabilityStore): boolean =>
  capabilities.get(STRANGERS_CAPABILITY) === 'fault';

export function maxCandidates(capabilities: CapabilityStore): number {
  return Math.min(MAX_CANDIDATES, MAX_CALLS * Number(capabilities.get(ENTRIES_CAPABILITY) ?? MAX_ENTRIES));
}

/** Ids in the first call: every server accepts this many (docs/dev/rest.md 2.1). After a success, `GROWTH` times as many. */
const FIRST_ENTRIES = 4;
const GROWTH = 4;
const MAX_ENTRIES = 256;
const MAX_CANDIDATES = 320;
const MAX_CALLS = 8;

interface ProbeOptions {
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly capabilities: CapabilityStore;
  readonly maxEntries: number;
  readonly file: LiveFileName;
  readonly isEnough: (found: readonly TaskId[]) => boolean;
  readonly signal: AbortSignal;
}

export interface Probed {
  readonly found: readonly TaskId[];
  /** Number of probed candidates, with those that failed a call of their own. */
  readonly asked: number;
  /** Whether the service answers every id, so that its responses prove nothing. */
  readonly answersAll: boolean;
}

/** Probes candidates in their order. @throws JobtailError for failures other than those of the ids */
export async function probe(candidates: Iterator<TaskId>, options: ProbeOptions): Promise<Probed> {
  const probing = new Probing(options);
  let waiting: TaskId[] = [];
  while (probing.calls < MAX_CALLS && !options.isEnough(probing.found)) {
    while (waiting.length < probing.entries && probing.asked + waiting.length < MAX_CANDIDATES) {
      const { value, done } = candidates.next();
      if (done === true) break;
      waiting.push(value);
    }
    const slice = waiting.slice(0, probing.entries);
    if (slice.length === 0) break;
    if (await probing.ask(slice)) waiting = waiting.slice(slice.length);
  }
  probing.requireAnswer();
  const answersAll = await probing.answersStrangers();
  return { found: answersAll ? [] : probing.found, asked: probing.asked, answersAll };
}

class Probing {
  readonly found: TaskId[] = [];
  readonly #options: ProbeOptions;
  calls = 0;
  asked = 0;
  entries: number;
  #max: number;
  /** The ids in the last failed call; undefined once a call with at least as many succeeded. */
  #failed: number | undefined;
  #isAnswered = false;
  /** The first failure of a call with one id that showed nothing about it. */
  #unclear: JobtailError | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
    const { capabilities, maxEntries } = options;
    this.#max = Math.min(maxEntries, MAX_ENTRIES, Number(capabilities.get(ENTRIES_CAPABILITY) ?? MAX_ENTRIES));
    this.entries = Math.min(FIRST_ENTRIES, this.#max);
  }

  async ask(slice: readonly TaskId[]): Promise<boolean> {
    try {
      const answered = await this.#call(slice);
      this.#isAnswered = true;
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
      if (error.policy.isRefusal) {
        this.#learn(STRANGERS_CAPABILITY, 'fault');
        this.#isAnswered = true;
      } else this.#unclear ??= error;
    }
    this.asked += slice.length;
    return true;
  }

  /** If ids of other jobs do not fail a call, a longer call that failed was too long: `entries` is the maximum. */
  #wentThrough(entries: number, hadStrangers: boolean): void {
    if (hadStrangers) this.#learn(STRANGERS_CAPABILITY, 'left-out');
    if (hadStrangers && this.#failed !== undefined) {
      this.#max = entries;
      this.#learn(ENTRIES_CAPABILITY, String(entries));
    }
    this.#failed = undefined;
    this.entries = Math.min(this.#max, entries * GROWTH);
  }

  /** @throws JobtailError if no call showed anything */
  requireAnswer(): void {
    if (!this.#isAnswered && this.#unclear !== undefined) throw this.#unclear;
  }

  /** Whether the service answers even an impossible id; requested only if every probed id was answered. */
  async answersStrangers(): Promise<boolean> {
    const isKnown = this.#options.capabilities.get(STRANGERS_CAPABILITY) !== undefined;
    if (isKnown || this.found.length === 0 || this.found.length < this.asked) return false;
    try {
      const answered = await this.#call([STRANGER]);
      if (answered.length > 0) return true;
      this.#learn(STRANGERS_CAPABILITY, 'left-out');
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      this.#learn(STRANGERS_CAPABILITY, 'fault');
    }
    return false;
  }

  #learn(capability: string, value: string): void {
    const { capabilities } = this.#options;
    capabilities.set(capability, value);
  }

  async #call(tasks: readonly TaskId[]): Promise<TaskId[]> {
    const { remote, jobId, file, signal } = this.#options;
    this.calls += 1;
    const wanted = tasks.map((taskId) => ({ taskId, file, offset: BEHIND_EVERY_END }));
    const { parts } = await remote.readParts(jobId, wanted, signal);
    for (const { content } of parts) await content.release();
    return parts.map(({ taskId }) => taskId);
  }
}

/** No database counts this far. */
const STRANGER = String(2n ** 62n + 1n) as TaskId;

export interface Clues {
  readonly jobId: JobId;
  readonly specifications: readonly bigint[];
  /** The last known difference between the id of a task and that of its specification. */
  readonly shift: bigint | undefined;
  readonly known: readonly TaskId[];
}

const LAST_ID = 2n ** 63n - 1n;
/** Maximum distance to known ids, in both directions. */
const REACH = 2_048n;
/** Maximum specifications read from a listing: no job has so many tasks. */
const MAX_SPECIFICATIONS = 10_000;
/** Maximum specifications that are probed first: if none of these is a task id, the others are unlikely to be. */
const FIRST_SPECIFICATIONS = 64;
/** Maximum known tasks that a shift must fit. */
const MAX_WITNESSES = 32;
/** Maximum shifts that are tried. */
const MAX_SHIFTS = 256;

/** Yields candidate ids: shifted and plain specifications, then ids by growing distance from known ones. */
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

function ends(ids: readonly bigint[]): bigint[] {
  const [first, ...others] = ids;
  if (first === undefined) return [];
  const least = others.reduce((a, b) => (b < a ? b : a), first);
  const greatest = others.reduce((a, b) => (b > a ? b : a), first);
  return [greatest, least];
}

/** The ids at the start of listed names (docs/dev/servers.md 4.2), each once. */
export async function specificationsIn(listed: Iterable<string>): Promise<bigint[]> {
  const found = new Set<string>();
  for await (const name of inSlices(listed)) {
    const [, digits] = /^\/*0*([1-9][0-9]{0,18})\//.exec(name) ?? [];
    if (digits !== undefined && found.size < MAX_SPECIFICATIONS) found.add(digits);
  }
  return [...found].map(BigInt);
}

/** The difference between each task and its specification, if it is the same for all; else undefined. */
export function shiftBetween(specifications: readonly bigint[], tasks: readonly TaskId[]): bigint | undefined {
  const from = specifications.toSorted(byNumber);
  const to = tasks.map(BigInt).toSorted(byNumber);
  const [first = 0n, firstTask = 0n] = [from[0], to[0]];
  const shift = firstTask - first;
  const isSame = from.length === to.length && from.every((id, index) => to[index] === id + shift);
  return isSame && from.length > 0 ? shift : undefined;
}

/** The smallest difference that leads from some of the specifications to all known tasks. */
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
