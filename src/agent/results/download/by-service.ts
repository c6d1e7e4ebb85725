/** One result file by DownloadFileFromCluster, within the limits. */
import { JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import type { Throttle } from '../../../system/clock.ts';
import type { DiskReserve } from '../../../system/files.ts';
import type { Remote } from '../../ports.ts';
import { type Arrived, receive } from '../place/temporary-files.ts';

/** What downloads may take. */
export interface DownloadLimits {
  readonly maxFileBytes: number | null;
  /** Of a direct transfer, which keeps to it by itself; the throttle keeps all others to it. */
  readonly bytesPerSecond: number | null;
  readonly throttle: Throttle;
  readonly reserve: DiskReserve;
  /** Files of a job at a time. */
  readonly parallel: number;
  /** How long the service may take until the first byte of a file. */
  readonly silentMs: number;
  readonly hangs: Hangs;
}

/** Whether the service answers, or hangs on a file: then all calls of its user wait, whichever file or job they are of. */
export class Hangs {
  #isAnswering = true;

  /** A file of which no byte came is the cause, unless the service was silent already. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  began(): void {
    this.#isAnswering = false;
  }

  answered(): void {
    this.#isAnswering = true;
  }
}

export interface ServiceDownloadOptions {
  readonly remote: Remote;
  readonly jobId: JobId;
  /** As listed. */
  readonly name: string;
  /** Where the temporary file goes. */
  readonly directory: string;
  readonly limits: DownloadLimits;
  /** A larger file is left to a direct transfer. */
  readonly directAboveBytes: number | null;
  /** How long it may take until the first byte. */
  readonly silentMs: number;
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** too-large: beyond `maxFileBytes`. for-direct: beyond `directAboveBytes`. no-room: the disk's reserve begins. */
export type Downloaded = Arrived | 'too-large' | 'for-direct' | 'no-room';

/** How often it is asked whether there is room on the disk. */
const ROOM_BYTES = 16 * 1024 * 1024;

export async function downloadByService(options: ServiceDownloadOptions): Promise<Downloaded> {
  const { remote, jobId, name, directory, directAboveBytes, limits, signal } = options;
  const { maxFileBytes, reserve, throttle } = limits;
  if (!(await reserve.hasRoomFor(0))) return 'no-room';
  let stopped: Exclude<Downloaded, Arrived> | undefined;
  let bytes = 0;
  const stop = (why: typeof stopped) => {
    stopped = why;
    throw new JobtailError('aborted', 'the download is not wanted');
  };
  const take = async (chunk: Buffer) => {
    const before = bytes;
    bytes += chunk.length;
    if (maxFileBytes !== null && bytes > maxFileBytes) stop('too-large');
    if (directAboveBytes !== null && bytes > directAboveBytes) stop('for-direct');
    const isTime = Math.floor(bytes / ROOM_BYTES) > Math.floor(before / ROOM_BYTES);
    if (isTime && !(await reserve.hasRoomFor(ROOM_BYTES))) stop('no-room');
  };
  try {
    return await receive(directory, (write) =>
      remote.downloadFile(
        jobId,
        name,
        async (chunk) => {
          await take(chunk);
          await write(chunk);
          options.onBytes(chunk.length);
          await throttle.pay(chunk.length, signal);
        },
        signal,
        options.silentMs,
      ),
    );
  } catch (error) {
    if (stopped !== undefined) return stopped;
    throw error;
  }
}
