/**
 * The words for what is followed: a job, its tasks and the four live files of a task.
 * Ids are `xs:long` on the wire (docs/dev/soap.md 2.5, 4.1); they are kept as canonical decimal text, because a
 * JavaScript number is wrong beyond 2^53.
 */

declare const jobIdBrand: unique symbol;
declare const taskIdBrand: unique symbol;

/** submittedJobInfoId, as canonical decimal text. */
export type JobId = string & { readonly [jobIdBrand]: true };
/** submittedTaskInfoId, as canonical decimal text. */
export type TaskId = string & { readonly [taskIdBrand]: true };

const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;

/** The canonical text of a whole number in the range of `xs:long`, or undefined if `value` is none. */
export function parseLong(value: unknown): string | undefined {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') return undefined;
  const text = String(value);
  if (!/^[+-]?[0-9]{1,40}$/.test(text)) return undefined;
  const long = BigInt(text);
  return long >= LONG_MIN && long <= LONG_MAX ? long.toString() : undefined;
}

/** A job id from what a person or a server wrote, or undefined. No service has one below 1; `-5` is no name of a directory. */
export function parseJobId(value: unknown): JobId | undefined {
  const long = parseLong(value);
  return long === undefined || BigInt(long) < 1n ? undefined : (long as JobId);
}

/** A task id from what a person or a server wrote, or undefined. */
export function parseTaskId(value: unknown): TaskId | undefined {
  return parseLong(value) as TaskId | undefined;
}

/** Orders ids by their number, not by their text. */
export function compareIds(a: string, b: string): number {
  const left = BigInt(a);
  const right = BigInt(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The live files of a task, in the order people expect to see them. */
export const LIVE_FILE_NAMES = ['stdout', 'stderr', 'log', 'progress'] as const;
/** One of the live files of a task, by the name of its mirror. */
export type LiveFileName = (typeof LIVE_FILE_NAMES)[number];

export const isLiveFileName = (text: string): text is LiveFileName =>
  (LIVE_FILE_NAMES as readonly string[]).includes(text);

/** What names a live file within its job. */
export interface LiveFileKey {
  readonly taskId: TaskId;
  readonly file: LiveFileName;
}

/** After the end of any file (1 TiB): the text is empty. ext4 has no offset from 2^44 on (docs/dev/servers.md 10.2). */
export const BEHIND_EVERY_END = 2 ** 40;

/** The order of live files for people. */
export function byTaskAndFile(a: LiveFileKey, b: LiveFileKey): number {
  return compareIds(a.taskId, b.taskId) || LIVE_FILE_NAMES.indexOf(a.file) - LIVE_FILE_NAMES.indexOf(b.file);
}

/** One text for a key, to be used in maps. */
export function keyText(key: LiveFileKey): string {
  return `${key.taskId}/${key.file}`;
}

/** Whether the agent's work on a job is over, by its state in the store. */
export const isOver = ({ state }: { readonly state: string }) => state === 'ended' || state === 'settled';
