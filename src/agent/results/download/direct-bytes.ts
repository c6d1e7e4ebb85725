/** Raw bytes of live files by direct transfer: whole into a file without a name here, and from there to the mirror. */

import fs from 'node:fs/promises';
import { JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { resultPath } from '../../../safe-names.ts';
import { PIECE_BYTES } from '../../../system/files.ts';
import { READ } from '../../../system/regular-files.ts';
import type { Reserve } from '../../ports/host.ts';
import type { Remote, Sink } from '../../ports/server.ts';
import type { DirectBytes } from '../../ports/transfer.ts';
import type { DirectResults } from './by-direct.ts';

interface DirectLiveFilesOptions {
  readonly direct: DirectResults;
  /** Grants and releases the keys. */
  readonly remote: Remote;
  readonly reserve: Reserve;
  readonly resultsOf: (jobId: JobId) => string;
}

export class DirectLiveFiles implements DirectBytes {
  readonly #options: DirectLiveFilesOptions;

  constructor(options: DirectLiveFilesOptions) {
    this.#options = options;
  }

  isOpen(jobId: JobId): boolean {
    return this.#options.direct.reasonAgainst(jobId) === undefined;
  }

  async downloadFile(jobId: JobId, name: string, sink: Sink, signal: AbortSignal): Promise<number> {
    const { direct, remote, reserve, resultsOf } = this.#options;
    const safe = resultPath(name);
    if ('refused' in safe) throw new JobtailError('not-found', `the service names a live file, but ${safe.refused}`);
    let copy: fs.FileHandle | undefined;
    const onFile = async (_: object, arrived: string) => {
      copy ??= await fs.open(arrived, READ);
    };
    const place = { of: 'live', presentDirectory: resultsOf(jobId), largestPresentBytes: 0 } as const;
    try {
      await direct.bring({ jobId, remote, reserve, signal, files: [safe], ...place, onFile });
      if (copy === undefined) throw new JobtailError('not-found', 'the direct transfer found no such file');
      return await send(copy, sink, signal);
    } finally {
      await copy?.close();
    }
  }
}

/** Passes on all bytes of an open file; returns how many. */
export async function send(copy: fs.FileHandle, sink: Sink, signal: AbortSignal): Promise<number> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let bytes = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await copy.read(buffer);
    if (bytesRead === 0) return bytes;
    await sink(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}
