/**
 * The disk under the mirrors: real files, whose handles can run out of room, fail to flush, or be stopped within any
 * call; and a power loss, after which only what was flushed is certain.
 */
import fs from 'node:fs';
import fsp from 'node:fs/promises';

/** What a power loss does to bytes that were not flushed. */
export type Tear = 'kept' | 'lost' | 'cut' | 'zeroed';

interface Unflushed {
  /** The content when it was last flushed. */
  durable: Buffer;
  /** The bytes before this position were not written since. */
  safe: number;
  /** Bytes whose flush failed: the system holds them for clean, though they never reached the disk. */
  lost: { from: number; to: number } | undefined;
}

export class ModelDisk {
  /** Bytes that can still be written. */
  room = Number.POSITIVE_INFINITY;
  /** Whether a write takes half of what it is given, so that it can be stopped in its middle. */
  shortWrites = false;
  /** How many of the next flushes fail. */
  flushFailures = 0;
  /** Called before each call on a handle and in the middle of a write; if it throws, the call does nothing. */
  beforeStep: (step: string) => Promise<void> = async () => {};
  /** Handles that were not closed. */
  openHandles = 0;
  readonly #files = new Map<string, Unflushed>();

  async open(file: string, flags: number, mode: number): Promise<fsp.FileHandle> {
    const handle = await fsp.open(file, flags, mode);
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
        if (state.lost !== undefined) state.lost.to = Math.min(state.lost.to, length);
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

  /** `where` in [0, 1) says at which of the bytes that are not safe the tear is. */
  powerLoss(tear: Tear, where: number): void {
    for (const [file, { durable, safe, lost }] of this.#files) {
      if (!fs.existsSync(file)) continue;
      const bytes = fs.readFileSync(file);
      const at = safe + Math.floor(where * (bytes.length - safe + 1));
      if (tear === 'lost' && !durable.equals(bytes)) fs.writeFileSync(file, durable);
      if (tear === 'cut' && at < bytes.length) fs.truncateSync(file, at);
      if (tear === 'zeroed' && at < bytes.length) fs.writeFileSync(file, bytes.fill(0, at));
      if (lost !== undefined && tear !== 'kept') {
        const left = fs.readFileSync(file);
        fs.writeFileSync(file, left.fill(0, Math.min(lost.from, left.length), Math.min(lost.to, left.length)));
      }
      this.#files.set(file, this.#flushed(file));
    }
  }

  #stateOf(file: string): Unflushed {
    const state = this.#files.get(file) ?? this.#flushed(file);
    this.#files.set(file, state);
    return state;
  }

  #flushed(file: string): Unflushed {
    const durable = fs.readFileSync(file);
    return { durable, safe: durable.length, lost: undefined };
  }

  async #write(
    handle: fsp.FileHandle,
    file: string,
    bytes: Buffer,
    position: number,
  ): Promise<{ bytesWritten: number }> {
    await this.beforeStep('write');
    if (this.room <= 0) throw systemError('ENOSPC', 'write', -28);
    const state = this.#stateOf(file);
    state.safe = Math.min(state.safe, position);
    if (state.lost !== undefined && position <= state.lost.from) state.lost = undefined;
    const length = Math.min(this.room, this.shortWrites ? Math.ceil(bytes.length / 2) : bytes.length);
    const { bytesWritten } = await handle.write(bytes, 0, length, position);
    this.room -= bytesWritten;
    return { bytesWritten };
  }

  async #flush(handle: fsp.FileHandle, file: string): Promise<void> {
    await this.beforeStep('datasync');
    const state = this.#stateOf(file);
    const { size } = await handle.stat();
    if (this.flushFailures > 0) {
      this.flushFailures--;
      if (state.safe < size) state.lost = { from: state.safe, to: size };
      throw systemError('EIO', 'fdatasync', -5);
    }
    await handle.datasync();
    this.#files.set(file, { durable: fs.readFileSync(file), safe: size, lost: state.lost });
  }
}

/** An error as the system's calls on a handle throw it: without a path. */
function systemError(code: string, syscall: string, errno: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall, errno });
}
