/** One place for the tests of direct transfers: a directory of a cluster, an order, and what came of it. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import type {
  DirectArrival,
  DirectFile,
  DirectRequest,
  DirectTransfer,
  Irregular,
} from '../../src/agent/ports/transfer.ts';
import { diskDirectory, temporaryDirectory } from '../support/temp-directory.ts';

export interface NamedFile extends DirectFile {
  readonly name: string;
}

/** A share with the job's directory. */
export const SHARED: TransferMethod = {
  ...{ serverHostname: null, sharedBasepath: '/scratch/jobs/501', protocol: 'NetworkShare', credentials: null },
};

export const fileOf = (name: string): NamedFile => ({ name, parts: name.split('/') });

export class TransferPlace {
  readonly directory = fs.realpathSync(temporaryDirectory(diskDirectory()));
  /** The job's directory on the cluster. */
  readonly cluster = path.join(this.directory, 'cluster', 'jobs', '501');
  readonly jobDirectory = path.join(this.directory, 'mirror', '501');
  readonly results = path.join(this.jobDirectory, 'results');
  readonly arrival = path.join(this.jobDirectory, '.direct');
  readonly came = new Map<string, Buffer>();
  readonly tooLarge: string[] = [];
  readonly irregular = new Map<string, Irregular>();
  readonly progress: number[] = [];
  /** How often it was reported that files were seen. */
  reached = 0;
  /** How many files were handed over together, each time. */
  readonly batches: number[] = [];

  constructor() {
    for (const directory of [this.cluster, this.results]) fs.mkdirSync(directory, { recursive: true });
  }

  /** Writes a file of the job on the cluster. */
  put(name: string, content: string | Buffer): void {
    const file = path.join(this.cluster, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  }

  /** Fetches files; what comes is taken over as the agent takes it. */
  async fetch(
    transfer: DirectTransfer,
    method: TransferMethod,
    names: readonly string[],
    more: Partial<DirectRequest<NamedFile>> = {},
  ): Promise<void> {
    await transfer.fetch<NamedFile>({
      method,
      files: names.map(fileOf),
      directory: this.arrival,
      presentDirectory: this.results,
      largestPresentBytes: Math.max(0, ...names.map((name) => this.#presentBytes(name))),
      maxFileBytes: null,
      bytesPerSecond: null,
      onFiles: async (arrivals) => {
        this.batches.push(arrivals.length);
        for (const arrival of arrivals) this.#take(arrival);
      },
      onTooLarge: (file) => this.tooLarge.push(file.name),
      onIrregular: ({ name }, kind) => this.irregular.set(name, kind),
      onBytes: (bytes) => this.progress.push(bytes),
      onReached: () => {
        this.reached += 1;
      },
      signal: new AbortController().signal,
      ...more,
    });
  }

  #presentBytes(name: string): number {
    return fs.lstatSync(path.join(this.results, name), { throwIfNoEntry: false })?.size ?? 0;
  }

  #take({ file, path: arrived, digest }: DirectArrival<NamedFile>): void {
    if (!fs.lstatSync(arrived).isFile()) throw new Error(`${arrived} is no regular file`);
    const content = fs.readFileSync(arrived);
    const sha256 = createHash('sha256').update(content).digest('hex');
    if (digest !== undefined) expect(digest, file.name).toEqual({ bytes: content.length, sha256 });
    this.came.set(file.name, content);
    const target = path.join(this.results, ...file.parts);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.renameSync(arrived, target);
  }

  /** Everything below a directory that is no directory. */
  files(directory: string): string[] {
    if (!fs.existsSync(directory)) return [];
    return fs
      .readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
      .sort();
  }
}
