/**
 * Which ids may be those of a job's tasks, where nobody tells (docs/servers.md 10.2). A listing begins its names with the
 * ids of specifications; those of tasks are equal to them, or differ by a number that is the same for a while, for both
 * are counted by one database. The id of the job is counted there, too.
 */
import type { JobId, TaskId } from '../../job.ts';
import { inSlices } from '../../slices.ts';

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
const MOST_SPECIFICATIONS = 10_000;
/** So many of them are asked about before anything else is: if none of these is right, the others hardly are. */
const FIRST_SPECIFICATIONS = 64;
/** Known tasks that have to fit what is concluded from them, and numbers that are tried for it. */
const MOST_WITNESSES = 32;
const MOST_SHIFTS = 256;

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
    if (digits !== undefined && found.size < MOST_SPECIFICATIONS) found.add(digits);
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

/** What leads from some of the specifications to all of the tasks that are known: the least there is, if there is any. */
function shiftOfSome(specifications: readonly bigint[], tasks: readonly TaskId[]): bigint | undefined {
  const step = Math.ceil(tasks.length / MOST_WITNESSES);
  const witnesses = tasks.filter((_, index) => index % step === 0).map(BigInt);
  const [first] = witnesses;
  if (first === undefined) return undefined;
  const all = new Set(specifications);
  const shifts = specifications.map((id) => first - id).sort((a, b) => byNumber(sizeOf(a), sizeOf(b)));
  return shifts.slice(0, MOST_SHIFTS).find((shift) => witnesses.every((task) => all.has(task - shift)));
}

const sizeOf = (shift: bigint) => (shift < 0n ? -shift : shift);
const byNumber = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
