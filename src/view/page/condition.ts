/** Whether the page shows what is true now; if not, why, since when, and when it is tried again. */
import type { ShownError } from '../contract/addresses.ts';
import type { AgentState, Events, FleetState } from '../contract/events.ts';

/** `open`: everything is current. `lost`: it is tried again. `refused`: the session is over, or there was none. */
export type ConnectionState = 'connecting' | 'open' | 'lost' | 'refused';

type ConditionKind =
  | ('current' | 'connecting')
  | ('view-lost' | 'refused' | 'agent-stopped' | 'state-unreadable' | 'fleet-lost' | 'service-down');

export interface Condition {
  readonly kind: ConditionKind;
  readonly problem?: ShownProblem;
}

/** What the banner shows. */
export interface ShownProblem {
  readonly message: string;
  readonly hint: string | null;
  readonly since: number | null;
  /** When it is tried again: a moment, or in words. */
  readonly next: number | string | null;
}

export interface KnownState {
  readonly connection: ConnectionState;
  /** When the connection broke. */
  readonly lostAt: number | null;
  /** Why there is no access, or no stream; '' without an answer. */
  readonly refusal: string;
  readonly agent: AgentState | undefined;
  readonly fleet: FleetState | undefined;
  readonly stateError: NonNullable<Events['stateError']> | null;
}

/** What is nearest to the page comes first: behind a lost view nothing else is known. */
export function conditionOf({ connection, lostAt, refusal, agent, fleet, stateError }: KnownState): Condition {
  if (connection === 'connecting') return { kind: connection };
  if (connection === 'refused')
    return problem('refused', {
      message: `No access: ${refusal}.`,
      hint: 'Run `agent view` where the agent runs, and open the link that it prints. This page goes on then.',
      since: lostAt,
      next: null,
    });
  if (connection === 'lost') {
    const shown = { since: lostAt, next: 'every few seconds' };
    if (refusal !== '') return problem('view-lost', { ...shown, message: `The view refuses: ${refusal}.`, hint: null });
    const hint = 'It goes on by itself once the agent, or `agent view`, serves it again.';
    return problem('view-lost', { ...shown, message: 'The view does not answer.', hint });
  }
  if (stateError !== null) return problem('state-unreadable', { ...stateError, since: null, next: 'every second' });
  if (fleet?.error != null) {
    const { message, hint, since } = fleet.error;
    return problem('fleet-lost', { message, hint, since, next: 'every few seconds' });
  }
  // Of a fleet, any agent is enough.
  if (agent?.running === false && !fleet?.agents.some(({ state }) => state !== 'gone'))
    return problem('agent-stopped', {
      message: `No agent ${fleet === undefined ? '' : 'of the fleet '}runs: nothing new arrives.`,
      hint: 'Start it with `agent run`, or with the service manager of this machine.',
      since: agent.lastPolledAt,
      next: null,
    });
  if (agent?.serviceError != null) {
    const { message, hint, since, retryAt = null } = agent.serviceError;
    return problem('service-down', { message, hint, since, next: retryAt });
  }
  return { kind: 'current' };
}

const problem = (kind: ConditionKind, shown: ShownProblem): Condition => ({ kind, problem: shown });

/** What the corner of the page shows. */
export const CONDITION_WORDS: Readonly<Record<ConditionKind, string>> = {
  connecting: 'connecting',
  current: 'live',
  'view-lost': 'view lost',
  'agent-stopped': 'agent stopped',
  'state-unreadable': 'state unreadable',
  'fleet-lost': 'fleet not reachable',
  'service-down': 'service down',
  refused: 'no access',
};

/** Whether states and colours show what was so, not what is. */
export const isStale = ({ kind }: Condition): boolean => kind !== 'current' && kind !== 'connecting';

/** The banner shows a failure of the service once; others belong to their job or file. */
export const isOwn = (error: ShownError, condition: Condition): boolean =>
  error.isOfService !== true || condition.kind === 'current';
