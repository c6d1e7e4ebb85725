/** One result file by DownloadFileFromCluster, within the limits. */
import { JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import type { DiskReserve, Throttle } from '../../../system/disk-room.ts';
import type { Remote } from '../../ports.ts';
import { type Arrived, receive } from '../place/temporary-files.ts';

export interface ServiceDownloadOptions {
  readonly remote: Remote;
  readonly jobId: JobId;
  /** As listed. */
  readonly name: string;
  /** Where the temporary file goes. */
  readonly directory: string;
  readonly maxFileBytes: number | null;
  /** A larger file is left to a direct transfer. */
  readonly directAboveBytes: number | null;
  readonly reserve: DiskReserve;
  readonly throttle: Throttle;
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** too-large: beyond `maxFileBytes`. for-direct: beyond `directAboveBytes`. no-room: the disk's reserve begins. */
export type Downloaded = Arrived | 'too-large' | 'for-direct' | 'no-room';

/** How often the room on the disk is looked at. */
const LOOK_BYTES = 16 * 1024 * 1024;

export async function downloadByService(options: ServiceDownloadOptions): Promise<Downloaded> {
  const { remote, jobId, name, directory, maxFileBytes, directAboveBytes, reserve, throttle, signal } = options;
  if (!(await reserve.hasRoomFor(0))) return 'no-room';
  let stopped: Exclude<Downloaded, Arrived> | undefined;
  let bytes = 0;
  const stop = (why: typeof stopped) => {
    stopped = why;
    throw new JobtailError('aborted', 'the download is not wanted');
  };
  try {
    return await receive(directory, (write) =>
      remote.downloadFile(
        jobId,
        name,
        async (chunk) => {
          const before = bytes;
          bytes += chunk.length;
          if (maxFileBytes !== null && bytes > maxFileBytes) stop('too-large');
          if (directAboveBytes !== null && bytes > directAboveBytes) stop('for-direct');
          const isTimeToLook = Math.floor(bytes / LOOK_BYTES) > Math.floor(before / LOOK_BYTES);
          if (isTimeToLook && !(await reserve.hasRoomFor(LOOK_BYTES))) stop('no-room');
          await write(chunk);
          options.onBytes(chunk.length);
          await throttle.pay(chunk.length, signal);
        },
        signal,
      ),
    );
  } catch (error) {
    if (stopped !== undefined) return stopped;
    throw error;
  }
}
