/** The view in its own thread. */
import type { Log } from '../agent/ports/host.ts';
import { type Config, hasJobService, serviceAddress } from '../config/config.ts';
import { isLoopback } from '../system/names.ts';
import { packageFile } from '../system/package-file.ts';
import { AgentCounts } from '../view/events/figures.ts';
import { addressOf } from '../view/link.ts';
import type { ViewProgram, ViewSettings } from '../view/settings.ts';
import { ServingThread } from './serving-thread.ts';
import type { ViewThreadData } from './view-worker.ts';

interface ViewThreadOptions {
  readonly log: Log;
  readonly onState: (lacking: string | undefined) => void;
}

export class ViewThread {
  /** Sent with each pulse. */
  readonly counts = new AgentCounts();
  readonly #options: ViewThreadOptions;
  readonly #thread: ServingThread<ViewThreadData>;

  constructor(options: ViewThreadOptions) {
    const { log, onState } = options;
    this.#options = options;
    this.#thread = new ServingThread({
      program: packageFile('dist/daemon/view-worker.js'),
      pulse: () => ({ counts: this.counts }),
      onServing({ settings }, port) {
        onState(undefined);
        const address = addressOf(settings.listen, port);
        log.info({ address, port, hint: 'agent view prints its link' }, 'view listening');
      },
      onFailure: (err) => log.error({ scope: 'the view', err }, 'request of the view failed'),
      onEnded({ settings }, err, isFirst) {
        const address = addressOf(settings.listen);
        const hint = 'the agent goes on, and begins it again; if its address is in use, set view.listen to a free one';
        const fields = { scope: 'the view', code: 'config', address, err, hint } as const;
        log[isFirst ? 'error' : 'debug'](fields, 'cannot listen for the view');
        onState(`there is no view: ${err}`);
      },
    });
  }

  /** Serves with these settings; null: stops. A running thread with equal settings continues. */
  use(data: ViewThreadData | null): Promise<void> {
    if (data === null) this.#options.onState(undefined);
    return this.#thread.use(data);
  }

  async close(): Promise<void> {
    this.#options.onState(undefined);
    await this.#thread.close();
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
  if (view === null || 'path' in view.listen || isLoopback(view.listen.host)) return undefined;
  return `the view listens on ${view.listen.host} without encryption: its token and the output of jobs are sent unencrypted`;
}

export function viewSettingsOf(config: Config, { program, agentPid }: ViewProgram): ViewSettings {
  const { mirror, state, service, errors } = config;
  const { listen, tokenFile, publicUrl } = config.view ?? USUAL;
  return {
    listen,
    tokenFile,
    program,
    agentPid,
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
