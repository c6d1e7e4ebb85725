/**
 * Downloads of named pipes: the service opens the pipe and waits for a program that writes into it, and meanwhile
 * answers no call of that user, also when the client has gone (docs/dev/rest.md 5.4).
 */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxUser } from '../signin/sessions.ts';

const TICK_MS = 20;
const READ_BYTES = 64 * 1024;

export class PipeReads {
  readonly #hanging = new Map<SandboxUser, Promise<Buffer>>();
  readonly #stop = new AbortController();

  /** Waits until no download of the user hangs, or `signal` fires. */
  async over(user: SandboxUser, signal: AbortSignal): Promise<void> {
    const hanging = this.#hanging.get(user);
    if (hanging === undefined) return;
    await Promise.race([hanging.catch(() => undefined), once(signal, 'abort').catch(() => undefined)]);
    signal.throwIfAborted();
  }

  /** What is written into a pipe until the writer closes it. */
  async read(path: string, user: SandboxUser): Promise<Buffer> {
    const reading = readPipe(path, this.#stop.signal);
    this.#hanging.set(user, reading);
    try {
      return await reading;
    } finally {
      this.#hanging.delete(user);
    }
  }

  /** Ends all that hangs, and what would hang from now on: the service goes away. */
  stop(): void {
    this.#stop.abort();
  }
}

export async function isPipe(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFIFO() === true;
}

async function readPipe(path: string, signal: AbortSignal): Promise<Buffer> {
  // An open that blocks would hold a thread of the process for as long.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const chunks: Buffer[] = [];
  let isOpened = false;
  try {
    for (;;) {
      const chunk = await readChunk(handle);
      // Without a writer, a read reports the end.
      if (chunk?.length === 0 && isOpened) return Buffer.concat(chunks);
      isOpened ||= chunk?.length !== 0;
      if (chunk !== undefined && chunk.length > 0) chunks.push(chunk);
      else await sleep(TICK_MS, undefined, { signal, ref: false });
    }
  } finally {
    await handle.close();
  }
}

/** Undefined while a writer has the pipe open and has written nothing more. */
async function readChunk(handle: FileHandle): Promise<Buffer | undefined> {
  const buffer = Buffer.alloc(READ_BYTES);
  try {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, null);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}
