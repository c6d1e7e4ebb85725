/** Texts that wait for the names of their files. The start of a long one goes to a temporary file. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Content, Part, PartRequest, Parts } from '../../agent/ports/server.ts';
import { GrowingBuffer } from '../../bytes.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { keyText, type LiveFileName, parseTaskId, type TaskId } from '../../job.ts';
import { writeAll } from '../../system/files.ts';
import { malformed, tooLarge } from '../wrong-responses.ts';
import type { Lifted } from './lifted.ts';
import { CONTENT, fieldsOf, longOf, type Taken, textOf, type Value } from './values.ts';

interface PartEntry {
  readonly taskId: TaskId | undefined;
  readonly file: LiveFileName | undefined;
  /** Decimal text; null without one. */
  readonly offset: string | null;
  readonly content: Content;
  readonly relativePath: string | null;
}

/** Longer than PATH_MAX: dropped, because it would be compared with each listed name. */
const MAX_PATH_CHARACTERS = 4_096;

const NO_CONTENT: Content = {
  length: 0,
  read: async () => Buffer.alloc(0),
  release: async () => undefined,
};

/** A call names at most a thousand files. */
const MAX_ENTRIES = 10_000;

/** Reads a response with parts. */
type ReadTaken = (taken: Taken & { readonly lifted: Lifted }) => Promise<unknown>;

/** The parts for `wanted`; `files`: by the type in the response. Releases all others, and all if it throws. */
export async function readParts(
  wanted: readonly PartRequest[],
  files: ReadonlyMap<string, LiveFileName>,
  place: SpillPlace,
  read: ReadTaken,
): Promise<Parts> {
  const texts = new ResponseTexts(place, enoughOf(wanted));
  const entries: PartEntry[] = [];
  const onItem = (item: Value, text: number | undefined) => {
    if (entries.length === MAX_ENTRIES) throw tooLarge(`more than ${MAX_ENTRIES} entries`);
    const entry = entryOf(item, text === undefined ? undefined : texts.texts[text], files);
    if (entry !== undefined) entries.push(entry);
  };
  try {
    await read({ lifted: texts, onItem });
    const beginning = texts.hasEnough ? texts.endEarly() : undefined;
    return { ...(await matchParts(entries, wanted)), beginning };
  } catch (error) {
    await texts.discard();
    throw error;
  } finally {
    await texts.close();
  }
}

/** @throws JobtailError malformed */
function entryOf(
  item: Value,
  content: Content | undefined,
  files: ReadonlyMap<string, LiveFileName>,
): PartEntry | undefined {
  const fields = fieldsOf(item);
  if (fields === null || fields.size === 0) return undefined;
  // The lifted text leaves an empty one.
  if ((fields.get(CONTENT) ?? '') !== '') throw malformed('a content that is no text');
  const path = textOf(fields.get('relativepath'));
  return {
    taskId: parseTaskId(longOf(fields.get('submittedtaskinfoid'))),
    file: files.get(textOf(fields.get('filetype')) ?? ''),
    offset: longOf(fields.get('offset')),
    content: content ?? NO_CONTENT,
    relativePath: path === null || path.length > MAX_PATH_CHARACTERS ? null : path,
  };
}

/** With several files, a text is cut only where no request needs more. */
function enoughOf(wanted: readonly PartRequest[]): number | undefined {
  if (wanted.some(({ enoughBytes }) => enoughBytes === undefined)) return undefined;
  return Math.min(...wanted.map(({ enoughBytes = Number.POSITIVE_INFINITY }) => enoughBytes));
}

async function matchParts(entries: readonly PartEntry[], wanted: readonly PartRequest[]) {
  const missing = new Map(wanted.map((request) => [keyText(request), request]));
  const parts: Part[] = [];
  const refused: Content[] = [];
  for (const entry of entries) {
    const request = requestOf(entry, missing);
    if (request === undefined) {
      refused.push(entry.content);
      continue;
    }
    missing.delete(keyText(request));
    const { taskId, file, offset } = request;
    parts.push({ taskId, file, offset, content: entry.content, relativePath: entry.relativePath });
  }
  await Promise.all(refused.map((content) => content.release()));
  return { parts, refused: refused.length };
}

/** Servers repeat the offset, or leave it nil or 0 (docs/dev/servers.md 1.1). */
function requestOf(
  { taskId, file, offset }: PartEntry,
  missing: ReadonlyMap<string, PartRequest>,
): PartRequest | undefined {
  if (taskId === undefined || file === undefined) return undefined;
  const request = missing.get(keyText({ taskId, file }));
  return offset === null || offset === '0' || offset === String(request?.offset) ? request : undefined;
}

/** When the texts of one response fill this many times `memoryBytes`, all that comes goes to the file. */
const TEXTS_IN_MEMORY = 16;
/** Maximum memory of the texts of one response, in the same unit: the shortest ones are never written to the file. */
const MAX_IN_MEMORY = 4 * TEXTS_IN_MEMORY;

/** The texts of one response, with one temporary file for all. */
export class ResponseTexts implements Lifted {
  readonly encoding = 'text';
  readonly #place: SpillPlace;
  readonly #enoughBytes: number;
  readonly #texts: ResponseText[] = [];
  readonly #file: SpillFile;
  readonly #tail = new GrowingBuffer();
  #memoryBytes = 0;
  /** Of the text under way. */
  #spilled = { start: 0, length: 0 };

  /** `enoughBytes`: needed bytes of a text; all if omitted. */
  constructor(place: SpillPlace, enoughBytes = Number.POSITIVE_INFINITY) {
    this.#place = place;
    this.#enoughBytes = enoughBytes;
    this.#file = new SpillFile(place);
  }

  /** The end of the text before it has left nothing. */
  begin(): void {}

  bytes(bytes: Buffer): void {
    this.#tail.append(bytes);
  }

  end(): void {
    const tail = this.#tail.take();
    this.#memoryBytes += tail.length;
    this.#texts.push(new ResponseText(this.#file, this.#spilled, tail));
    this.#spilled = { start: this.#file.length, length: 0 };
    if (this.#memoryBytes <= MAX_IN_MEMORY * this.#place.memoryBytes) return;
    throw new JobtailError('answer-too-large', `the response has ${this.#texts.length} texts and more`, {
      hint: 'fewer files are requested at once; if the error persists, check what the service sends',
    });
  }

  /** Moves bytes above the memory limit to the file. @throws JobtailError disk-full, permission, local-io */
  async flush(): Promise<void> {
    const { memoryBytes } = this.#place;
    const isCrowded = this.#memoryBytes + this.#tail.length > TEXTS_IN_MEMORY * memoryBytes;
    if (this.#tail.length <= (isCrowded ? 0 : memoryBytes)) return;
    await this.#file.append(this.#tail.view());
    this.#spilled.length += this.#tail.length;
    this.#tail.clear();
  }

  get hasEnough(): boolean {
    return this.#spilled.length + this.#tail.length >= this.#enoughBytes;
  }

  /** The text under way. The caller releases it. */
  endEarly(): Content {
    this.end();
    const text = this.#texts.at(-1);
    if (text === undefined) throw new JobtailError('internal', 'no text was begun');
    return text;
  }

  /** The texts in the order of the response. The caller releases each. */
  get texts(): readonly Content[] {
    return this.#texts;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async discard(): Promise<void> {
    await Promise.all(this.#texts.map((text) => text.release()));
  }
}

class ResponseText implements Content {
  readonly length: number;
  readonly #file: SpillFile;
  readonly #spilled: { readonly start: number; readonly length: number };
  #tail: Buffer | undefined;

  constructor(file: SpillFile, spilled: { readonly start: number; readonly length: number }, tail: Buffer) {
    this.#file = file;
    this.#spilled = spilled;
    this.#tail = tail;
    this.length = spilled.length + tail.length;
    file.users += 1;
  }

  async read(start: number, end: number): Promise<Buffer> {
    if (this.#tail === undefined) throw new JobtailError('internal', 'a text was read after it had been released');
    const to = Math.min(end, this.length);
    const { start: fileStart, length: inFile } = this.#spilled;
    const fromTail = this.#tail.subarray(Math.max(0, start - inFile), Math.max(0, to - inFile));
    if (start >= inFile || start >= to) return fromTail;
    const length = to - start;
    const bytes = Buffer.allocUnsafe(length);
    await this.#file.read(bytes, fileStart + start, length - fromTail.length);
    fromTail.copy(bytes, length - fromTail.length);
    return bytes.subarray(0, length);
  }

  async release(): Promise<void> {
    if (this.#tail === undefined) return;
    this.#tail = undefined;
    await this.#file.close();
  }
}

export interface SpillPlace {
  readonly directory: string;
  readonly memoryBytes: number;
}

/** Created with its first bytes, and closed when its last user has closed it. */
class SpillFile {
  readonly #place: SpillPlace;
  #handle: FileHandle | undefined;
  #length = 0;
  users = 1;

  constructor(place: SpillPlace) {
    this.#place = place;
  }

  get length(): number {
    return this.#length;
  }

  async close(): Promise<void> {
    this.users -= 1;
    if (this.users === 0) await this.#handle?.close();
  }

  async append(bytes: Buffer): Promise<void> {
    try {
      this.#handle ??= await openUnnamed(this.#place.directory);
      await writeAll(this.#handle, bytes, this.#length);
    } catch (error) {
      // A call on an open file names none.
      if (error instanceof Error) Object.assign(error, { path: this.#place.directory });
      throw asJobtailError(error);
    }
    this.#length += bytes.length;
  }

  async read(bytes: Buffer, start: number, length: number): Promise<void> {
    try {
      for (let done = 0; done < length; ) {
        const result = await this.#handle?.read(bytes, done, length - done, start + done);
        if (result === undefined || result.bytesRead === 0) {
          throw new JobtailError('local-io', 'a temporary file is shorter than what was written to it', {
            hint: 'find out what truncates files below state.directory; the call is repeated',
          });
        }
        done += result.bytesRead;
      }
    } catch (error) {
      throw asJobtailError(error);
    }
  }
}

async function openUnnamed(directory: string): Promise<FileHandle> {
  const path = join(directory, `.answer-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle;
}
