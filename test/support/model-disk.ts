/** The disk under the mirrors: real files, whose handles can run out of room, fail to flush, or be stopped at any call. */
import { fileCalls, type RandomAccessFile } from '../../src/system/files.ts';

export class ModelDisk {
  /** Bytes that can still be written. */
  room = Number.POSITIVE_INFINITY;
  /** How many of the next flushes fail. */
  flushFailures = 0;
  /** Called before each call on a handle; if it throws, the call does nothing. */
  beforeStep: (step: string) => Promise<void> = async () => {};
  /** Handles that were not closed. */
  openHandles = 0;

  async open(file: string, flags: number, mode?: number): Promise<RandomAccessFile> {
    const handle = await fileCalls(false).open(file, flags, mode);
    this.openHandles++;
    const calls: Partial<Record<PropertyKey, unknown>> = {
      write: (bytes: Buffer, offset: number, length: number, position: number) =>
        this.#write(handle, bytes.subarray(offset, offset + length), position),
      truncate: async (length: number) => {
        await this.beforeStep('truncate');
        await handle.truncate(length);
      },
      datasync: () => this.#flush(),
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

  async #write(handle: RandomAccessFile, bytes: Buffer, position: number): Promise<{ bytesWritten: number }> {
    await this.beforeStep('write');
    if (this.room <= 0) throw systemError('ENOSPC', 'write', -28);
    const { bytesWritten } = await handle.write(bytes, 0, Math.min(this.room, bytes.length), position);
    this.room -= bytesWritten;
    return { bytesWritten };
  }

  async #flush(): Promise<void> {
    await this.beforeStep('datasync');
    if (this.flushFailures === 0) return;
    this.flushFailures--;
    throw systemError('EIO', 'fdatasync', -5);
  }
}

/** An error as the system's calls on a handle throw it: without a path. */
function systemError(code: string, syscall: string, errno: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall, errno });
}
