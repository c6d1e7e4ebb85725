/** The agent of the soak: a process of its own, looked at from outside. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../simulator/free-port.ts';
import type { Sandbox } from '../../simulator/sandbox.ts';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { run, type Started, startProcess, usageOf } from '../processes.ts';
import { oneOf, type SoakJob } from './cluster-work.ts';
import type { Sample } from './figures.ts';

const PROGRAM = path.join(import.meta.dirname, '../../../dist/cli/main.js');
/** A mirror that the agent writes just now is left alone: an edit in between could be taken for its own. */
const LEFT_ALONE_MS = 3_000;
const MAX_TRIES = 50;

export class SoakAgent {
  readonly #directory: string;
  readonly #metricsUrl: string;
  readonly #process: Started;
  readonly #store: Store;
  /** Commands of people that are under way. */
  readonly #commands = new Set<Promise<void>>();
  #last = { cpuSeconds: 0, atMs: performance.now() };

  private constructor(directory: string, metricsUrl: string) {
    this.#directory = directory;
    this.#metricsUrl = metricsUrl;
    this.#store = new Store({ directory: path.join(directory, 'state'), service: '', owner: false, now: Date.now });
    this.#process = startProcess(process.execPath, [PROGRAM, 'run', '-c', path.join(directory, 'config.yaml')]);
  }

  static async start(directory: string, sandbox: Sandbox, jobs: readonly SoakJob[]): Promise<SoakAgent> {
    const listen = `127.0.0.1:${await freePort()}`;
    const state = path.join(directory, 'state');
    fs.mkdirSync(state);
    const passwordFile = path.join(directory, 'password');
    const [user] = sandbox.users;
    fs.writeFileSync(passwordFile, user?.password ?? '', { mode: 0o600 });
    const { baseUrl, fileTransferUrl, namespace } = sandbox;
    const config = {
      service: { protocol: 'soap', fileTransferUrl, namespace, baseUrl, requestsPerMinute: 60_000, timeoutSeconds: 5 },
      auth: { method: 'password', username: user?.username, passwordFile },
      mirror: { directory: path.join(directory, 'mirror'), keepGenerations: 2 },
      state: { directory: state },
      poll: { minIntervalSeconds: 1, maxIntervalSeconds: 10 },
      results: { intervalSeconds: 60 },
      logging: { level: 'warn' },
      metrics: { listen },
    };
    fs.writeFileSync(path.join(directory, 'config.yaml'), JSON.stringify(config));
    const store = new Store({ directory: state, service: fileTransferUrl, owner: true, now: Date.now });
    store.transaction(() => {
      for (const { jobId, taskId } of jobs) {
        const order = { jobId, tasks: [taskId], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null };
        store.jobs.watch({ ...order, source: 'command' }, Date.now());
      }
    });
    store.close();
    const agent = new SoakAgent(directory, `http://${listen}/metrics`);
    try {
      // A command that finds no agent would take its place.
      await agent.#metrics();
      return agent;
    } catch (error) {
      await agent.stop();
      throw error;
    }
  }

  async sample(): Promise<Omit<Sample, 'minute'>> {
    const { pid } = this.#process;
    const { cpuSeconds, residentBytes } = usageOf(pid);
    const atMs = performance.now();
    const coreShare = (cpuSeconds - this.#last.cpuSeconds) / ((atMs - this.#last.atMs) / 1000);
    this.#last = { cpuSeconds, atMs };
    const metrics = await this.#metrics();
    const heapBytes = Number(/^\S*nodejs_heap_size_used_bytes (\S+)$/m.exec(metrics)?.[1]);
    const blockedMs = Number(/^\S*nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics)?.[1]) * 1000;
    const handles = fs.readdirSync(`/proc/${pid}/fd`).length;
    const { oldestPollAt } = this.#store.totals.read();
    const lagSeconds = oldestPollAt === null ? 0 : (Date.now() - oldestPollAt) / 1000;
    return { residentBytes, heapBytes, handles, lagSeconds, blockedMs, coreShare };
  }

  /** Somebody changes a mirror; false if there is none that lies still. */
  edit(job: SoakJob): boolean {
    const file = this.#mirrorOf(job, oneOf(LIVE_FILE_NAMES));
    const { size, mtimeMs } = fs.statSync(file, { throwIfNoEntry: false }) ?? { size: 0, mtimeMs: 0 };
    if (size === 0 || Date.now() - mtimeMs < LEFT_ALONE_MS) return false;
    const edits = [
      () => fs.appendFileSync(file, 'a note of somebody\n'),
      () => fs.truncateSync(file, Math.floor(size / 2)),
      () => fs.rmSync(file),
      () => fs.writeFileSync(file, Buffer.alloc(size, 'x')),
    ];
    oneOf(edits)();
    return true;
  }

  /** Somebody gives a job up, and thinks better of it. */
  watchAgain({ jobId, taskId }: SoakJob): void {
    const now = Math.random() < 0.5 ? ['--now'] : [];
    const done = this.#command(['unwatch', jobId, ...now]).then(() =>
      this.#command(['watch', jobId, '--task', taskId]),
    );
    this.#commands.add(done);
    void done.finally(() => this.#commands.delete(done));
  }

  reload(): void {
    process.kill(this.#process.pid, 'SIGHUP');
  }

  /** Waits until all mirrors are their files, and names those that are not in the end. */
  async untilEqual(jobs: readonly SoakJob[], seconds: number): Promise<string[]> {
    await Promise.all(this.#commands);
    for (let waited = 0; ; waited += 1) {
      const different = jobs.flatMap((job) =>
        LIVE_FILE_NAMES.filter((name) => !isEqual(job.files[name], this.#mirrorOf(job, name))).map(
          (name) => `${job.jobId}/${job.taskId}/${name}`,
        ),
      );
      if (different.length === 0 || waited >= seconds) return different;
      await sleep(1_000);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#commands);
    this.#store.close();
    await this.#process.stop();
  }

  /** While it starts or takes a new configuration, there are none. */
  async #metrics(): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await (await fetch(this.#metricsUrl)).text();
      } catch (error) {
        if (tries === MAX_TRIES)
          throw new Error(`no metrics: ${this.#process.stderr().slice(-2000)}`, { cause: error });
        await sleep(200);
      }
    }
  }

  /** A command may fail, for the service does. */
  async #command(args: readonly string[]): Promise<void> {
    const all = [PROGRAM, ...args, '-c', path.join(this.#directory, 'config.yaml')];
    await run(process.execPath, all).catch(() => {});
  }

  #mirrorOf({ jobId, taskId }: SoakJob, file: (typeof LIVE_FILE_NAMES)[number]): string {
    return mirrorPath(path.join(this.#directory, 'mirror'), jobId, { taskId, file });
  }
}

function isEqual(file: string, mirror: string): boolean {
  return read(file).equals(read(mirror));
}

const read = (file: string) => (fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0));
