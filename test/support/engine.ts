/** The real engine over a model service: real SQLite, real files, a clock that the test holds. */

import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { Mirrors, mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { RawBytes } from '../../src/agent/live/raw-bytes.ts';
import { completePass, type PassSummary } from '../../src/agent/pass/complete-pass.ts';
import { JobPolls, type PollContext, type Polled } from '../../src/agent/poll/poll.ts';
import type { LiveSource } from '../../src/agent/ports/live-source.ts';
import type { Remote } from '../../src/agent/ports/server.ts';
import type { DirectBytes } from '../../src/agent/ports/transfer.ts';
import { Results } from '../../src/agent/results/results.ts';
import { type JobId, keyText, type LiveFileKey, type TaskId } from '../../src/job.ts';
import type { MismatchKind } from '../../src/mismatch.ts';
import { textSources } from '../../src/remote/text/text-source.ts';
import { Commits, Store } from '../../src/store/store.ts';
import { fileCalls, type Opener, type RandomAccessFile } from '../../src/system/files.ts';
import { ModelRemote } from './model-remote.ts';
import { memoryDirectory, temporaryDirectory } from './temp-directory.ts';

export const JOB = '501' as JobId;
export const TASK = '9001' as TaskId;
export const STDOUT: LiveFileKey = { taskId: TASK, file: 'stdout' };

export interface EngineOptions {
  readonly directory: string;
  readonly remote: Remote;
  readonly now: () => number;
  readonly keepGenerations?: number;
  readonly overlapBytes?: number;
  readonly checkpoint?: (step: string) => void | Promise<void>;
  readonly disk?: ModelDisk;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes?: number | undefined;
  /** Live files that are polled together. */
  readonly maxTogether?: number;
  /** Another source of live files than `remote`. */
  readonly source?: LiveSource;
  /** Brings raw bytes by direct transfer. */
  readonly direct?: DirectBytes;
}

export class Engine {
  readonly store: Store;
  /** Kind, offset and generation of each that was reported. */
  readonly mismatches: (readonly [kind: MismatchKind, at: number, generation: number])[] = [];
  /** What each group of a poll appended, in bytes. */
  readonly grown: number[] = [];
  readonly #options: EngineOptions;
  readonly #polls: JobPolls;
  readonly #mirrorDirectory: string;

  constructor(options: EngineOptions) {
    this.#options = options;
    const { directory, now } = options;
    const state = newState(path.join(directory, 'state'));
    const disk = options.disk ?? new ModelDisk();
    this.store = new Store({ directory: state, service: 'model', owner: true, now });
    this.#mirrorDirectory = path.join(directory, 'mirror');
    const openFile: Opener = (file, flags, mode) => disk.open(file, flags, mode);
    const timer = (_: number, callback: () => void) => {
      queueMicrotask(callback);
      return () => {};
    };
    const commits = new Commits({ transaction: (work) => this.store.transaction(work), timer });
    const texts = textSources({
      capabilities: this.store.capabilities,
      direct: options.direct ?? null,
      batchLimit: { files: Number.POSITIVE_INFINITY },
      onChange: () => {},
      longBacklogBytes: options.longBacklogBytes,
    });
    const context: PollContext = {
      store: this.store,
      commitTogether: (write, withinMs) => commits.commit(write, withinMs),
      sourceOf: (jobId) => options.source ?? texts(jobId),
      rawBytes: new RawBytes(now),
      maxTogether: options.maxTogether,
      now,
      monotonic: now,
      liveFiles: {
        mirrors: new Mirrors(this.#mirrorDirectory, false, undefined, { ...fileCalls(false), open: openFile }),
        overlapBytes: options.overlapBytes ?? 256,
        keepGenerations: options.keepGenerations ?? 5,
        now,
        onMismatch: (_, { kind, at, generation }) => this.mismatches.push([kind, at, generation]),
        checkpoint: options.checkpoint ?? (() => {}),
        commitNow: (row) => this.store.transaction(() => this.store.liveFiles.save(row)),
      },
    };
    this.#polls = new JobPolls(JOB, context);
  }

  watch(keys: readonly LiveFileKey[]): void {
    for (const { taskId, file } of keys) {
      this.store.jobs.watch(
        { jobId: JOB, tasks: [taskId], files: [file], results: false, settleAfterMs: null, source: 'command' },
        this.#options.now(),
      );
    }
  }

  poll(
    isFinal = false,
    signal: AbortSignal = new AbortController().signal,
    waitForTurn = async () => {},
  ): Promise<Polled> {
    const { remote } = this.#options;
    const onAppended = (bytes: number) => this.grown.push(bytes);
    return this.#polls.poll({ remote, whole: remote, waitForTurn, onAppended, isFinal, signal });
  }

  /** The complete pass, whose pauses are over at once. */
  pass(
    onPause: (ms: number) => void = () => {},
    isLast = false,
    more: { readonly pauseMs?: number; readonly onCompared?: () => void } = {},
  ): Promise<PassSummary> {
    const { remote, now } = this.#options;
    const mirrorDirectory = this.#mirrorDirectory;
    const timer = (ms: number, callback: () => void) => {
      onPause(ms);
      queueMicrotask(callback);
      return () => {};
    };
    const clock = { now, monotonic: now, timer };
    const rules = { intervalMs: 1, include: ['**'], exclude: [], maxFileBytes: null, bandwidthLimit: null };
    return completePass(this.#polls, {
      store: this.store,
      results: new Results({
        ...{ store: this.store, mirrorDirectory, rules, clock },
        ...{ onNetwork: false, minFreeBytes: 0, silentMs: 60_000, parallel: 1, direct: null },
      }),
      mirrorDirectory,
      direct: this.#options.direct ?? null,
      remote,
      clock,
      pauseMs: 2_000,
      isLast,
      signal: new AbortController().signal,
      ...more,
    });
  }

  mirror(key: LiveFileKey): string {
    return mirrorPath(this.#mirrorDirectory, JOB, key);
  }

  /** Ends as a kill does: nothing more is written, what the process held is gone. */
  kill(): void {
    this.store.close();
  }
}

interface PolledOptions extends Partial<EngineOptions> {
  readonly keys?: readonly LiveFileKey[];
  readonly remote?: ModelRemote;
}

/** An engine whose live files are polled one time after another, at times that the test sets; closed with the test. */
export function polledPlace({ keys = [STDOUT], remote = new ModelRemote(), ...options }: PolledOptions = {}) {
  const time = { now: 1_000_000 };
  const engine = new Engine({ directory: temporaryDirectory(), now: () => time.now, ...options, remote });
  onTestFinished(() => engine.kill());
  engine.watch(keys);
  /** How a poll of the first file ends, so long after the one before. */
  const poll = async (afterMs = 1_000, isFinal = false) => {
    time.now += afterMs;
    const { outcomes, errors } = await engine.poll(isFinal);
    expect(remote.held).toBe(0);
    const name = keyText(keys[0] ?? STDOUT);
    return outcomes.get(name) ?? errors.get(name)?.code;
  };
  const mirror = (key = STDOUT) => fs.readFileSync(engine.mirror(key));
  return { time, remote, engine, poll, mirror, row: () => engine.store.liveFiles.ofJob(JOB)[0] };
}

export class ModelDisk {
  /** Bytes that can still be written. */
  room = Number.POSITIVE_INFINITY;
  /** How many of the next flushes fail. */
  flushFailures = 0;
  /** Called before each call on a handle, but after it is closed; if it throws, the call does nothing. */
  beforeStep: (step: string, file: string) => Promise<void> = async () => {};
  /** Handles that were not closed. */
  openHandles = 0;
  #opened = 0;

  async open(file: string, flags: number, mode?: number): Promise<RandomAccessFile> {
    const isLate = this.#opened++ % 2 === 0;
    const handle = await fileCalls(false).open(file, flags, mode);
    // Whatever is opened together, the last is open first.
    if (isLate) await new Promise((resolve) => setTimeout(resolve, 2));
    this.openHandles++;
    const calls: Partial<Record<PropertyKey, unknown>> = {
      write: (bytes: Buffer, offset: number, length: number, position: number) =>
        this.#write(handle, bytes.subarray(offset, offset + length), position),
      datasync: () => this.#flush(),
      close: async () => {
        await handle.close();
        this.openHandles--;
        await this.beforeStep('close', file);
      },
    };
    return new Proxy(handle, {
      get: (target, name) => {
        const member: unknown = calls[name] ?? Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (name === 'close') return member.bind(target);
        return async (...of: unknown[]) => {
          await this.beforeStep(String(name), file);
          return member.apply(target, of) as unknown;
        };
      },
    });
  }

  async #write(handle: RandomAccessFile, bytes: Buffer, position: number): Promise<{ bytesWritten: number }> {
    if (this.room <= 0) throw systemError('ENOSPC', 'write', -28);
    const { bytesWritten } = await handle.write(bytes, 0, Math.min(this.room, bytes.length), position);
    this.room -= bytesWritten;
    return { bytesWritten };
  }

  async #flush(): Promise<void> {
    if (this.flushFailures === 0) return;
    this.flushFailures--;
    throw systemError('EIO', 'fdatasync', -5);
  }
}

/** An error as the system's calls on a handle throw it: without a path. */
function systemError(code: string, syscall: string, errno: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall, errno });
}

const NAME = 'agent.db';

/** Made once: to make it takes as long as several polls. */
let database: Buffer | undefined;

/** Makes the directory with the database of a new state, unless there is one. */
export function newState(directory: string): string {
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  database ??= databaseOfNew();
  const file = path.join(directory, NAME);
  if (!fs.existsSync(file)) fs.writeFileSync(file, database, { mode: 0o600 });
  return directory;
}

function databaseOfNew(): Buffer {
  const directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-test-'));
  try {
    new Store({ directory, service: 'model', owner: true, now: () => 0 }).close();
    return fs.readFileSync(path.join(directory, NAME));
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}
