/** One live file in a directory of its own, and what was committed of it; without a store. */
import fs from 'node:fs';
import path from 'node:path';
import { FileMemory } from '../../src/agent/live/memory.ts';
import type { LiveFile } from '../../src/agent/live/mirror/live-file.ts';
import { type LiveFileOptions, Mirrors, mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { openLiveFile } from '../../src/agent/live/mirror/open-live-file.ts';
import type { Ownership } from '../../src/agent/ownership.ts';
import type { Mismatch } from '../../src/mismatch.ts';
import type { LiveFileRow, ResultRow } from '../../src/store/rows.ts';
import { fileCalls, type Opener } from '../../src/system/files.ts';
import { JOB, STDOUT } from './engine.ts';
import { temporaryDirectory } from './temp-directory.ts';

export const NEW_ROW: LiveFileRow = {
  ...STDOUT,
  jobId: JOB,
  position: 0,
  generation: 1,
  checksum: null,
  inode: null,
  modifiedNs: null,
  rotation: null,
  copyMark: null,
  relativePath: null,
  listedName: null,
  grownAt: null,
  ...{ verified: null, unverified: null, early: false },
  mismatches: [],
  error: null,
};

/** A result that was fetched. */
export const NEW_RESULT: ResultRow = {
  ...{ jobId: JOB, name: '/a', state: 'synced', reason: null, bytes: 1, sha256: null, live: null },
  ...{ listedAt: 1, fetchedAt: 1, stamp: null, stampProven: false, hangs: 0, dueAt: 1, intervalMs: 1 },
};

/** Why a generation begins. */
export const REWRITTEN: Mismatch = { kind: 'rewritten', at: 0, reason: 'for the test' };

export interface PlaceOptions extends Partial<LiveFileOptions> {
  readonly ownership?: Ownership;
  readonly openFile?: Opener;
}

export class LivePlace {
  readonly directory = temporaryDirectory();
  readonly path = mirrorPath(this.directory, JOB, STDOUT);
  /** What was committed, in order; the last one is what a start would find. */
  readonly commits: LiveFileRow[] = [];
  /** Called at each step and commit of the live file, by its name; what it throws ends the work there. */
  onStep: (step: string) => void = () => {};
  readonly memory: FileMemory;

  constructor(monotonic = () => 0) {
    this.memory = new FileMemory(monotonic);
  }

  /** A place whose mirror holds committed bytes. */
  static async of(text: string, monotonic?: () => number): Promise<LivePlace> {
    const place = new LivePlace(monotonic);
    await place.write(text);
    return place;
  }

  /** Appends and commits bytes. */
  async write(text: string, options: PlaceOptions = {}): Promise<void> {
    await this.during((file) => file.append(Buffer.from(text)), options);
  }

  get committed(): LiveFileRow {
    return this.commits.at(-1) ?? NEW_ROW;
  }

  commit(row: LiveFileRow): void {
    this.onStep('commit');
    this.commits.push(row);
  }

  open({ ownership, openFile, ...options }: PlaceOptions = {}): Promise<LiveFile> {
    const local = fileCalls(false);
    const calls = openFile === undefined ? local : { ...local, open: openFile };
    return openLiveFile(this.committed, this.memory, {
      mirrors: new Mirrors(this.directory, false, ownership, calls),
      overlapBytes: 256,
      keepGenerations: 5,
      now: () => 0,
      commitNow: (row) => this.commit(row),
      checkpoint: (step) => this.onStep(step),
      ...options,
    });
  }

  /** As a poll does: whatever happens, the file is closed; what `work` left in order is committed. */
  async during<T>(work: (file: LiveFile) => Promise<T>, options: PlaceOptions = {}): Promise<T> {
    const file = await this.open(options);
    try {
      const result = await work(file);
      if (file.changed) this.commit(await file.flushToRow());
      return result;
    } finally {
      await file.close();
    }
  }

  /** The process is gone; what it knew of its mirrors with it. */
  kill(): void {
    this.onStep = () => {};
  }

  /** The mirror, or one of its old generations; undefined if it is not there. */
  read(generationsBack = 0): string | undefined {
    const file = generationsBack === 0 ? this.path : `${this.path}.${generationsBack}`;
    return fs.existsSync(file) ? fs.readFileSync(file, 'latin1') : undefined;
  }

  files(): string[] {
    return fs.readdirSync(path.dirname(this.path)).sort();
  }
}
