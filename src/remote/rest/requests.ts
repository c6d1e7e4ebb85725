/**
 * JSON values with exact 64-bit numbers and names without case, and the requests for parts: they have a short limit, so
 * the wanted files are divided (docs/dev/rest.md 2).
 */
import type { PartRequest } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId, TaskId } from '../../job.ts';
import { FILE_TYPES, REQUEST } from './contract.ts';

export type Json = string | boolean | null | JsonNumber | LiftedText | JsonObject | readonly Json[];

export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The place of a text that was lifted out of the document. */
export class LiftedText {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

export class JsonObject {
  readonly #members = new Map<string, readonly [name: string, value: Json]>();

  get(name: string): Json | undefined {
    return this.#members.get(name.toLowerCase())?.[1];
  }

  set(name: string, value: Json): void {
    this.#members.set(name.toLowerCase(), [name, value]);
  }

  get members(): readonly (readonly [name: string, value: Json])[] {
    return [...this.#members.values()];
  }
}

/** Omits undefined members. */
export function jsonObject(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const object = new JsonObject();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) object.set(name, value);
  return object;
}

export function writeJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (value instanceof LiftedText) return 'null';
  if (value instanceof JsonObject) {
    return `{${value.members.map(([name, inner]) => `${JSON.stringify(name)}:${writeJson(inner)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`;
  return JSON.stringify(value);
}

export function partsMembers(jobId: JobId, wanted: readonly PartRequest[]): Readonly<Record<string, Json>> {
  return { [REQUEST.jobId]: new JsonNumber(jobId), [REQUEST.offsets]: wanted.map(entryOf) };
}

function entryOf({ taskId, file, offset }: PartRequest): Json {
  if (!Number.isSafeInteger(offset)) throw new JobtailError('usage', `the offset ${offset} is no whole number`);
  return jsonObject({
    [REQUEST.taskId]: new JsonNumber(taskId),
    [REQUEST.fileType]: new JsonNumber(String(FILE_TYPES[file])),
    [REQUEST.offset]: new JsonNumber(String(offset)),
  });
}

interface RequestLimit {
  readonly maxBytes: number;
  readonly sessionBytes: number;
}

export function partsBytes(jobId: JobId, wanted: readonly PartRequest[], sessionBytes: number): number {
  const session = { [REQUEST.sessionCode]: 'x'.repeat(sessionBytes) };
  return Buffer.byteLength(writeJson(jsonObject({ ...partsMembers(jobId, wanted), ...session })));
}

/**
 * As few requests as possible: files of one task stay together, and tasks in their order. A task is divided only if it
 * does not fit into one request; a single file is requested whatever its length.
 */
export function divideByBytes(
  jobId: JobId,
  wanted: readonly PartRequest[],
  { maxBytes, sessionBytes }: RequestLimit,
): PartRequest[][] {
  const room = maxBytes - partsBytes(jobId, [], sessionBytes);
  const slices: PartRequest[][] = [];
  let left = 0;
  const add = (together: readonly PartRequest[]) => {
    const bytes = together.reduce((sum, request) => sum + writeJson(entryOf(request)).length + 1, 0);
    if (bytes > room && together.length > 1) {
      for (const request of together) add([request]);
      return;
    }
    if (slices.length === 0 || bytes > left) {
      slices.push([]);
      left = room;
    }
    slices.at(-1)?.push(...together);
    left -= bytes;
  };
  for (const together of byTask(wanted).values()) add(together);
  // A call without files is a call, too.
  return slices.length === 0 ? [[]] : slices;
}

function byTask(wanted: readonly PartRequest[]): Map<TaskId, PartRequest[]> {
  const tasks = new Map<TaskId, PartRequest[]>();
  for (const request of wanted) {
    const together = tasks.get(request.taskId);
    if (together === undefined) tasks.set(request.taskId, [request]);
    else together.push(request);
  }
  return tasks;
}
