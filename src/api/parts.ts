/** What the routes use. */
import type { Surroundings } from '../cli/show/status-report.ts';
import type { Config } from '../config/config.ts';
import type { SharedState } from '../daemon/state.ts';
import type { EventFeed } from './events.ts';

export interface ApiParts {
  readonly config: Config;
  /** The state, beside the agent that owns it. */
  readonly state: SharedState;
  readonly feed: EventFeed;
  readonly surroundings: () => Promise<Surroundings>;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}
