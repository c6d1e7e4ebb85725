/** The view in its own thread, which is started again with back-off; the agent continues. */
import { Worker } from 'node:worker_threads';
import type { Log } from '../agent/ports/host.ts';
import { BackOff } from '../back-off.ts';
import { type Config, hasJobService, serviceAddress } from '../config/config.ts';
import { packageFile } from '../system/package-file.ts';
import { AgentCounts } from '../view/events/figures.ts';
import { addressOf } from '../view/link.ts';
import type { ViewProgram, ViewSettings } from '../view/settings.ts';
import type { FromView, ToView, ViewThreadData } from './view-worker.ts';

interface ViewThreadOptions {
  readonly log: Log;
  readonly onState: (lacking: string | undefined) => void;
  readonly pulseMs?: number;
  readonly program?: string;
}

/** A page that needs too much memory ends the thread, not the agent. */
const LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };
const PAUSE = { firstMs: 1_000, maxMs: 60_000 };
/** After this time, the next failure is a new one. */
const LONG_MS = 60_000;
const CLOSE_MS = 2_000;
/** A thread that leaves this number of pulses unanswered is ended: 30 s. Not by the clock, which a suspended machine moves. */
const MAX_MISSED = 6;
const PULSE_MS = 5_000;

export class ViewThread {
  /** Sent with each pulse. */
  readonly counts = new AgentCounts();
  readonly #options: ViewThreadOptions;
  readonly #pause = new BackOff({ ...PAUSE, nowMs: () => performance.now(), random: Math.random });
  #data: ViewThreadData | null = null;
  #thread: Worker | undefined;
  #again: NodeJS.Timeout | undefined;
  #why = '';
  #servesSince = Number.POSITIVE_INFINITY;

  constructor(options: ViewThreadOptions) {
    this.#options = options;
  }

  /** Serves with these settings; null: stops. A running thread with equal settings continues. */
  async use(data: ViewThreadData | null): Promise<void> {
    if (JSON.stringify(data) === JSON.stringify(this.#data)) return;
    await this.close();
    this.#data = data;
    if (data !== null) this.#begin(data);
  }

  async close(): Promise<void> {
    this.#data = null;
    clearTimeout(this.#again);
    this.#pause.reset();
    this.#options.onState(undefined);
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage({ kind: 'close' } satisfies ToView);
    const timer = setTimeout(() => void thread.terminate(), CLOSE_MS);
    await ended;
    clearTimeout(timer);
  }

  #begin(data: ViewThreadData): void {
    const { settings } = data;
    const { log, onState } = this.#options;
    this.#why = 'it ended';
    const { pulseMs = PULSE_MS, program = packageFile('dist/daemon/view-worker.js') } = this.#options;
    const thread = new Worker(program, { workerData: data, resourceLimits: LIMITS });
    this.#thread = thread;
    let missed = 0;
    const pulse = setInterval(() => {
      if (missed++ < MAX_MISSED) return thread.postMessage({ kind: 'pulse', counts: this.counts } satisfies ToView);
      this.#why = `it did not answer for ${(MAX_MISSED * pulseMs) / 1000} s`;
      void thread.terminate();
    }, pulseMs);
    thread.on('message', (message: FromView) => {
      switch (message.kind) {
        case 'pulse':
          missed = 0;
          return;
        case 'serving': {
          const address = addressOf(settings.listen, message.port);
          this.#servesSince = performance.now();
          onState(undefined);
          log.info({ address, port: message.port, hint: 'agent view prints its link' }, 'view listening');
          return;
        }
        case 'failure':
          log.error({ scope: 'the view', err: message.message }, 'request of the view failed');
      }
    });
    thread.on('error', (error) => {
      this.#why = error.message;
    });
    thread.on('exit', () => {
      clearInterval(pulse);
      if (this.#thread === thread) this.#ended(data);
    });
  }

  #ended(data: ViewThreadData): void {
    const { log, onState } = this.#options;
    this.#thread = undefined;
    if (performance.now() - this.#servesSince > LONG_MS) this.#pause.reset();
    this.#servesSince = Number.POSITIVE_INFINITY;
    const isFirst = this.#pause.failures === 0;
    this.#pause.lengthen();
    const address = addressOf(data.settings.listen);
    const hint = 'the agent goes on, and begins it again; if its address is in use, set view.listen to a free one';
    const fields = { scope: 'the view', code: 'config', address, err: this.#why, hint };
    log[isFirst ? 'error' : 'debug'](fields, 'cannot listen for the view');
    onState(`there is no view: ${this.#why}`);
    this.#again = setTimeout(() => this.#begin(data), this.#pause.remainingMs);
  }
}

const USUAL: NonNullable<Config['view']> = {
  listen: { host: '127.0.0.1', port: 9470 },
  tokenFile: null,
  publicUrl: null,
};

export const PLAIN_VIEW_HINT = 'listen on 127.0.0.1, and put a proxy with TLS before it (docs/view.md)';

/** A warning about an address that other machines can reach without TLS; undefined if there is none. */
export function plainView(view: Config['view']): string | undefined {
  if (view === null || 'path' in view.listen || /^(?:localhost|::1|127(?:\.\d+){3})$/.test(view.listen.host))
    return undefined;
  return `the view listens on ${view.listen.host} without encryption: its token and the output of jobs are sent unencrypted`;
}

export function viewSettingsOf(config: Config, { program, agentPid }: ViewProgram): ViewSettings {
  const { mirror, state, service, errors } = config;
  const { listen, tokenFile, publicUrl } = config.view ?? USUAL;
  return {
    ...{ listen, tokenFile, program, agentPid },
    publicUrl: publicUrl?.replace(/(?<!\/)\/*$/, '/') ?? null,
    mirrorDirectory: mirror.directory,
    errorPatterns: errors.patterns,
    stateDirectory: state.directory,
    service: {
      address: serviceAddress(service),
      protocol: service.protocol,
      hasJobService: hasJobService(service),
      concurrency: service.concurrency,
      requestsPerMinute: service.requestsPerMinute,
    },
  };
}
