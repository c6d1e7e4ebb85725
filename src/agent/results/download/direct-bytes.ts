/** Raw bytes of live files by direct transfer: whole into a file without a name here, and from there to the mirror. */
import fs from 'node:fs/promises';
import { JobtailError } from '../../../errors.ts';
import { InTurn } from '../../../in-turn.ts';
import type { JobId } from '../../../job.ts';
import { resultPath } from '../../../safe-names.ts';
import { READ } from '../../../system/regular-files.ts';
import type { DirectBytes, Remote, Reserve, Sink } from '../../ports.ts';
import { type DirectResults, stagingDirectory } from './by-direct.ts';

const PIECE_BYTES = 1024 * 1024;

interface DirectLiveFilesOptions {
  readonly direct: DirectResults;
  /** Grants and releases the keys. */
  readonly remote: Remote;
  readonly reserve: Reserve;
  readonly resultsOf: (jobId: JobId) => string;
}

export class DirectLiveFiles implements DirectBytes {
  readonly #options: DirectLiveFilesOptions;
  /** The downloads of a job use one directory. */
  readonly #downloads = new InTurn<JobId>();

  constructor(options: DirectLiveFilesOptions) {
    this.#options = options;
  }

  isOpen(jobId: JobId): boolean {
    return this.#options.direct.reasonAgainst(jobId) === undefined;
  }

  downloadFile(jobId: JobId, name: string, sink: Sink, signal: AbortSignal): Promise<number> {
    return this.#downloads.run(jobId, signal, () => this.#download(jobId, name, sink, signal));
  }

  async #download(jobId: JobId, name: string, sink: Sink, signal: AbortSignal): Promise<number> {
    const { direct, remote, reserve, resultsOf } = this.#options;
    const safe = resultPath(name);
    if ('refused' in safe) throw new JobtailError('not-found', `the service names a live file, but ${safe.refused}`);
    // What an interrupted transfer left there is used again. Those of results have their own.
    const directory = stagingDirectory(resultsOf(jobId), 'live');
    let copy: fs.FileHandle | undefined;
    try {
      await direct.fetch({
        ...{ jobId, remote, reserve, signal, directory },
        files: [safe],
        presentDirectory: resultsOf(jobId),
        largestPresentBytes: 0,
        maxFileBytes: null,
        bytesPerSecond: null,
        onFiles: async ([arrival]) => {
          if (arrival === undefined) return;
          copy ??= await fs.open(arrival.path, READ);
          await fs.rm(arrival.path);
        },
        onTooLarge() {},
        onIrregular() {},
        onBytes() {},
      });
      if (copy === undefined) throw new JobtailError('not-found', 'the direct transfer found no such file');
      await fs.rm(directory, { recursive: true, force: true });
      return await send(copy, sink, signal);
    } finally {
      await copy?.close();
    }
  }
}

async function send(copy: fs.FileHandle, sink: Sink, signal: AbortSignal): Promise<number> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await copy.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return at;
    await sink(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
