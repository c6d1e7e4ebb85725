/**
 * The disk under the mirrors: real files, whose handles can run out of room, fail to flush, or be stopped within any
 * call; and a power loss, after which only what was flushed is certain.
 */
import fs from 'node:fs';
import { EXACT, fileCalls, type OpenFile } from '../../src/system/files.ts';

/** What a power loss does to bytes that were not flushed. */
export type Tear = 'kept' | 'lost' | 'cut' | 'zeroed';

interface Unflushed {
  /** The content when it was last flushed. */
  durable: Buffer;
  /** So many bytes the file certainly has: those that were flushed and not cut off since. */
  safe: number;
  /** From where on some of these were written over since. */
  overwritten: number;
  /** Where a flush failed: the system holds its bytes for clean, and the disk has others from `from` on. */
  lost: { readonly from: number; onDisk: Buffer } | undefined;
}

export class ModelDisk {
  /** Bytes that can still be written. */
  room = Number.POSITIVE_INFINITY;
  /** Whether a write takes half of what it is given, so that it can be stopped in its middle. */
  shortWrites = false;
  /** How many of the next flushes fail. */
  flushFailures = 0;
  /** Told of each that did, with the path of the file: what was not flushed before may be lost from now on. */
  onFlushFailure: (file: string) => void = () => {};
  /** Called before each call on a handle and in the middle of a write; if it throws, the call does nothing. */
  beforeStep: (step: string) => Promise<void> = async () => {};
  /** Handles that were not closed. */
  openHandles = 0;
  readonly #files = new Map<string, Unflushed>();

  async open(file: string, flags: number, mode?: number): Promise<OpenFile> {
    const handle = await fileCalls(false).open(file, flags, mode);
    this.openHandles++;
    if (!this.#files.has(file)) this.#files.set(file, this.#flushed(file));
    const calls: Partial<Record<PropertyKey, unknown>> = {
      write: (bytes: Buffer, offset: number, length: number, position: number) =>
        this.#write(handle, file, bytes.subarray(offset, offset + length), position),
      truncate: async (length: number) => {
        await this.beforeStep('truncate');
        const state = this.#stateOf(file);
        state.safe = Math.min(state.safe, length);
        if (state.lost !== undefined && state.lost.from >= length) state.lost = undefined;
        if (state.lost !== undefined) state.lost.onDisk = state.lost.onDisk.subarray(0, length - state.lost.from);
        await handle.truncate(length);
      },
      datasync: () => this.#flush(handle, file),
      close: async () => {
        this.openHandles--;
        await handle.close();
      },
    };
    return new Proxy(handle, {
      get: (target, name) => {
        const member: unknown = calls[name] ?? Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }

  /** Forgets what is known of a file: somebody else replaced it. */
  forget(file: string): void {
    this.#files.delete(file);
  }

  /**
   * `where` in [0, 1) says at which of the bytes that are not safe the tear is. Behind it, a file is shorter or has
   * zeros, but where flushed bytes were only written over, there are still the old ones.
   */
  powerLoss(tear: Tear, where: number): void {
    for (const [file, { durable, safe, overwritten, lost }] of this.#files) {
      if (!fs.existsSync(file) || tear === 'kept') continue;
      const written = fs.readFileSync(file);
      const at = tearAt(safe, written.length, where);
      const left = tear === 'lost' ? durable : torn(written, { tear, at });
      const old = tearAt(Math.min(overwritten, safe), safe, where);
      durable.copy(left, old, old, Math.max(old, Math.min(safe, left.length)));
      lost?.onDisk.copy(left, lost.from);
      if (!left.equals(written)) fs.writeFileSync(file, left);
    }
    for (const file of this.#files.keys()) if (fs.existsSync(file)) this.#files.set(file, this.#flushed(file));
  }

  #stateOf(file: string): Unflushed {
    const state = this.#files.get(file) ?? this.#flushed(file);
    this.#files.set(file, state);
    return state;
  }

  #flushed(file: string): Unflushed {
    const durable = fs.readFileSync(file);
    return { durable, safe: durable.length, overwritten: durable.length, lost: undefined };
  }

  async #write(handle: OpenFile, file: string, bytes: Buffer, position: number): Promise<{ bytesWritten: number }> {
    await this.beforeStep('write');
    if (this.room <= 0) throw systemError('ENOSPC', 'write', -28);
    const state = this.#stateOf(file);
    state.overwritten = Math.min(state.overwritten, position);
    if (state.lost !== undefined && position <= state.lost.from) state.lost = undefined;
    const length = Math.min(this.room, this.shortWrites ? Math.ceil(bytes.length / 2) : bytes.length);
    const { bytesWritten } = await handle.write(bytes, 0, length, position);
    this.room -= bytesWritten;
    return { bytesWritten };
  }

  async #flush(handle: OpenFile, file: string): Promise<void> {
    await this.beforeStep('datasync');
    const state = this.#stateOf(file);
    const size = Number((await handle.stat(EXACT)).size);
    if (this.flushFailures > 0) {
      this.flushFailures--;
      this.onFlushFailure(file);
      const from = Math.min(state.safe, state.overwritten);
      const onDisk = Buffer.alloc(Math.max(0, size - from));
      state.durable.copy(onDisk, 0, from, state.safe);
      if (onDisk.length > 0) state.lost = { from, onDisk };
      throw systemError('EIO', 'fdatasync', -5);
    }
    this.#files.set(file, { ...this.#flushed(file), lost: state.lost });
  }
}

/** Where among the bytes from `from` to `to` a tear is; `to`: there is none. */
const tearAt = (from: number, to: number, where: number) => from + Math.floor(where * (to - from + 1));

function torn(bytes: Buffer, { tear, at }: { readonly tear: 'cut' | 'zeroed'; readonly at: number }): Buffer {
  const left = Buffer.from(tear === 'cut' ? bytes.subarray(0, at) : bytes);
  return left.fill(0, Math.min(at, left.length));
}

/** An error as the system's calls on a handle throw it: without a path. */
function systemError(code: string, syscall: string, errno: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall, errno });
}
