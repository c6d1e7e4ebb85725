/** `Health`, which needs no session (docs/dev/rest.md 4.1). */
import type { Release } from '../../src/remote/rest/releases.ts';
import type { Answer } from '../exchange.ts';
import type { SandboxPlace } from '../place.ts';
import { answerOf } from './call.ts';

const PATH = 'health';

export const isHealth = (verb: string, path: string, { health }: Release) =>
  health && verb === 'GET' && path.toLowerCase() === PATH;

/** Of a real deployment, the version is a text in its configuration, and need not be that of the release. */
export function healthAnswer({ clock, habits }: SandboxPlace): Answer {
  const Info = { Initialized: true, Sealed: false, StandBy: false, PerformanceStandby: false };
  return answerOf({
    IsHealthy: true,
    Timestamp: new Date(clock()).toISOString(),
    Version: `v${habits.release}`,
    InstanceIdentifier: 'sandbox',
    Component: { Database: { IsHealthy: true }, Vault: { IsHealthy: true, Info } },
  });
}
