/** The real engine over a model service: real SQLite, real files, a clock that the test holds. */
import fs from 'node:fs';
import path from 'node:path';
import { ByJob } from '../../src/agent/by-job.ts';
import { Backlogs } from '../../src/agent/live/append/long-backlog.ts';
import { RawBytes } from '../../src/agent/live/append/raw-bytes.ts';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { OpenMirrors } from '../../src/agent/live/mirror/open-mirrors.ts';
import { Witnesses } from '../../src/agent/live/sightings.ts';
import { TextEncoding } from '../../src/agent/live/text/encoding.ts';
import { completePass, type PassSummary } from '../../src/agent/pass/complete-pass.ts';
import { BatchReader } from '../../src/agent/poll/batch.ts';
import { type Polled, pollJob } from '../../src/agent/poll/poll.ts';
import type { PollContext } from '../../src/agent/poll/poll-context.ts';
import { QuietFiles } from '../../src/agent/poll/quiet-files.ts';
import type { Clock, ContentWriter, Remote } from '../../src/agent/ports.ts';
import { Results } from '../../src/agent/results/results.ts';
import type { JobId, LiveFileKey, TaskId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { memoryWriter } from './memory-content.ts';
import { ModelDisk } from './model-disk.ts';

export const JOB = '501' as JobId;
export const TASK = '9001' as TaskId;
export const STDOUT: LiveFileKey = { taskId: TASK, file: 'stdout' };

export interface EngineOptions {
  readonly directory: string;
  readonly remote: Remote;
  readonly now: () => number;
  readonly keepGenerations?: number;
  readonly overlapBytes?: number;
  readonly contentEncoding?: string;
  readonly checkpoint?: (step: string) => void | Promise<void>;
  readonly disk?: ModelDisk;
  readonly newContent?: () => ContentWriter;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes?: number | undefined;
  /** The boot of the machine; null where it is not known. */
  readonly bootId?: string | null;
}

export class Engine {
  readonly store: Store;
  readonly #options: EngineOptions;
  readonly #context: PollContext;
  readonly #mirrorDirectory: string;
  readonly #mirrors: OpenMirrors;

  constructor(options: EngineOptions) {
    this.#options = options;
    const { directory, remote, now } = options;
    const state = path.join(directory, 'state');
    fs.mkdirSync(state, { recursive: true });
    const disk = options.disk ?? new ModelDisk();
    this.store = new Store({ directory: state, service: 'model', owner: true, now });
    this.#mirrorDirectory = path.join(directory, 'mirror');
    this.#mirrors = new OpenMirrors({
      directory: this.#mirrorDirectory,
      onNetwork: false,
      openFile: (file, flags, mode) => disk.open(file, flags, mode),
    });
    this.#context = {
      store: this.store,
      quietFiles: new QuietFiles(this.#mirrorDirectory, false),
      encoding: new TextEncoding(options.contentEncoding ?? 'auto', this.store.habits),
      witnesses: new Witnesses({ now, staleMs: 5_000, tailMs: 10_000, stuckMs: 60_000 }),
      rawBytes: new RawBytes({ remote, newContent: options.newContent ?? (() => memoryWriter()), now }),
      backlogs: new Backlogs(options.longBacklogBytes),
      batches: new BatchReader(this.store.habits),
      now,
      liveFiles: {
        mirrors: this.#mirrors,
        overlapBytes: options.overlapBytes ?? 256,
        keepGenerations: options.keepGenerations ?? 5,
        checkpoint: options.checkpoint ?? (() => {}),
        settled: new ByJob(),
        bootId: options.bootId === undefined ? 'this boot' : options.bootId,
      },
    };
  }

  watch(keys: readonly LiveFileKey[]): void {
    for (const { taskId, file } of keys) {
      this.store.jobs.watch(
        { jobId: JOB, tasks: [taskId], files: [file], results: false, settleAfterMs: null, source: 'command' },
        this.#options.now(),
      );
    }
  }

  poll(final = false, signal: AbortSignal = new AbortController().signal): Promise<Polled> {
    return pollJob(JOB, this.#context, { remote: this.#options.remote, final, signal });
  }

  /** The complete pass; `clock` makes its pauses. */
  pass(clock: Clock): Promise<PassSummary> {
    const { remote } = this.#options;
    const mirrorDirectory = this.#mirrorDirectory;
    const rules = { intervalMs: 1, include: ['**'], exclude: [], maxFileBytes: null, bandwidthLimit: null };
    return completePass(JOB, {
      poll: this.#context,
      results: new Results({
        ...{ store: this.store, mirrorDirectory, rules, clock },
        ...{ onNetwork: false, minFreeBytes: 0, parallel: 1, direct: null },
      }),
      mirrorDirectory,
      remote,
      clock,
      pauseMs: 2_000,
      signal: new AbortController().signal,
    });
  }

  mirror(key: LiveFileKey): string {
    return mirrorPath(this.#mirrorDirectory, JOB, key);
  }

  /** Mirrors that stay open until the next poll. */
  get openMirrors(): number {
    return this.#mirrors.size;
  }

  /** Ends as a kill does: nothing more is written, what the process held is gone. */
  kill(): void {
    void this.#mirrors.close();
    this.store.close();
  }
}
