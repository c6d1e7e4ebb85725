/** An agent under measurement with many watched jobs, and the middleware that it follows them through. */
import fs from 'node:fs';
import path from 'node:path';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../src/job.ts';
import { Store } from '../src/store/store.ts';
import { writeConfig } from './agent-config.ts';
import type { MiddlewareFigures, MiddlewareSetting } from './middleware.ts';
import { OUR_NODE_ARGS, type Started, startProcess } from './processes.ts';

/** The option of packages (packaging/agent.sh). */
const AS_PACKAGED = '--max-semi-space-size=2';
const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');

/** The middleware, as a process of its own. */
export interface RunningMiddleware {
  readonly url: string;
  readonly figures: () => Promise<MiddlewareFigures>;
  /** Forgets what it was asked so far. */
  readonly reset: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startMiddleware(setting: MiddlewareSetting): Promise<RunningMiddleware> {
  const script = path.join(import.meta.dirname, 'middleware.js');
  const started = startProcess(process.execPath, [script, JSON.stringify(setting)]);
  const { port } = JSON.parse((await started.says(/^\{.*\}$/m))[0]) as { port: number };
  const url = `http://127.0.0.1:${port}`;
  const look = async (at: string) => (await (await fetch(`${url}/${at}`)).json()) as MiddlewareFigures;
  return {
    url,
    figures: () => look('figures'),
    reset: async () => void (await look('reset')),
    stop: () => started.stop(),
  };
}

interface Watching {
  readonly jobs: number;
  readonly files: readonly LiveFileName[];
  /** Between polls of a job; as the agent does by itself if left out. */
  readonly intervalSeconds?: number;
  /** Null: the measured share of the server. */
  readonly requestsPerMinute: number | null;
}

/** The directories and the configuration of one agent. */
export class AgentPlace {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes the configuration, and registers the jobs 1, 2, ... with one task each: that of the same number. */
  prepare({ url }: Pick<RunningMiddleware, 'url'>, watching: Watching): void {
    const state = path.join(this.#directory, 'state');
    fs.mkdirSync(state, { recursive: true });
    const fileTransferUrl = `${url}/FileTransferWs`;
    const { intervalSeconds, requestsPerMinute } = watching;
    const interval = { minIntervalSeconds: intervalSeconds, maxIntervalSeconds: intervalSeconds };
    writeConfig(
      this.#directory,
      { url: fileTransferUrl, concurrency: 8, requestsPerMinute },
      { poll: intervalSeconds === undefined ? {} : interval, results: { enabled: false } },
    );
    const store = new Store({ directory: state, service: fileTransferUrl, owner: true, now: Date.now });
    store.transaction(() => {
      for (let job = 1; job <= watching.jobs; job += 1) {
        const order = { jobId: String(job) as JobId, tasks: [String(job) as TaskId], files: watching.files };
        store.jobs.watch({ ...order, results: false, settleAfterMs: null, source: 'command' }, Date.now());
      }
    });
    store.close();
  }

  start(nodeOptions: readonly string[] = []): Started {
    const options = [AS_PACKAGED, ...OUR_NODE_ARGS, ...nodeOptions];
    return startProcess(process.execPath, [...options, AGENT, 'run', '-c', path.join(this.#directory, 'config.yaml')]);
  }
}

export const ALL_FILES = LIVE_FILE_NAMES;

/** Waits until the agent has asked the middleware so many times. @throws Error if it ends before */
export async function untilAsked(agent: Started, middleware: RunningMiddleware, calls: number): Promise<void> {
  await agent.until(`it asked ${calls} times`, async () => (await middleware.figures()).calls >= calls);
}
