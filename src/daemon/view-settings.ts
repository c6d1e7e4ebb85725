/** What the view has to know, of a configuration. */
import type { Config } from '../config/config.ts';
import { serviceAddress, tellsOfJobs } from '../config/service-address.ts';
import type { ViewSettings } from '../view/settings.ts';

/** Of a view that stands in no configuration: what `view: {}` would say. */
const USUAL: NonNullable<Config['view']> = {
  listen: { host: '127.0.0.1', port: 9470 },
  tokenFile: null,
  publicUrl: null,
};

/** Whoever reaches it there reaches it over plain HTTP. */
export const PLAIN_VIEW_HINT = 'listen on 127.0.0.1, and put a proxy with TLS before it (docs/view.md)';

/** What is wrong with an address that others than this machine reach; undefined if nothing is. */
export function plainView({ view }: Pick<Config, 'view'>): string | undefined {
  if (view === null || 'path' in view.listen || /^(?:localhost|::1|127(?:\.\d+){3})$/.test(view.listen.host))
    return undefined;
  return `the view listens on ${view.listen.host} without encryption: its token and the output of jobs travel readably`;
}

export function viewSettingsOf(
  config: Pick<Config, 'view' | 'mirror' | 'state' | 'service'>,
  { program, agentPid }: Pick<ViewSettings, 'program' | 'agentPid'>,
): ViewSettings {
  const { mirror, state, service } = config;
  const { listen, tokenFile, publicUrl } = config.view ?? USUAL;
  return {
    ...{ listen, tokenFile, program, agentPid },
    publicUrl: publicUrl?.replace(/(?<!\/)\/*$/, '/') ?? null,
    mirrorDirectory: mirror.directory,
    stateDirectory: state.directory,
    service: {
      address: serviceAddress(service),
      protocol: service.protocol,
      tellsOfJobs: tellsOfJobs(service),
      concurrency: service.concurrency,
      requestsPerMinute: service.requestsPerMinute,
    },
  };
}
