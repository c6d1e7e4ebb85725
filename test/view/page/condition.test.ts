import { describe, expect, it } from 'vitest';
import type { AgentState, FleetAgent, FleetState } from '../../../src/view/contract/events.ts';
import { conditionOf, isOwn, isStale, type KnownState } from '../../../src/view/page/condition.ts';

const error = { code: 'unreachable', message: 'refused', hint: 'wait', since: 5, retryAt: 9, isOfService: true };
const agent: AgentState = { running: true, pid: 1, watchMine: null, serviceError: null, lastPolledAt: null };
const known: KnownState = {
  ...{ connection: 'open', lostAt: null, refusal: '' },
  ...{ agent, fleet: undefined, stateError: null },
};
const member: FleetAgent = {
  ...{ name: 'anna', state: 'alive', jobs: 3, maxJobs: 9, pollAgeMs: 0, callsLastMinute: 1, lacks: null },
  ...{ notFollowed: 0, seenAt: 1, host: 'h', version: '1', view: null },
};
const fleet: FleetState = { name: 'ben', agents: [member], waitingJobs: 0, error: null };
const stopped = { ...agent, running: false };

describe('the condition of the page', () => {
  it.each<[string, Partial<KnownState>, string, boolean]>([
    ['all is well', {}, 'current', false],
    ['nothing came so far', { connection: 'connecting', agent: undefined }, 'connecting', false],
    ['nothing of the agent came so far', { agent: undefined }, 'current', false],
    ['the service is down', { agent: { ...agent, serviceError: error } }, 'service-down', true],
    ['no agent runs', { agent: { ...agent, running: false, serviceError: error } }, 'agent-stopped', true],
    ['another agent of the fleet runs', { agent: stopped, fleet }, 'current', false],
    [
      'no agent of the fleet runs',
      { agent: stopped, fleet: { ...fleet, agents: [{ ...member, state: 'gone' }] } },
      'agent-stopped',
      true,
    ],
    [
      'the database of the fleet is away',
      { agent: stopped, fleet: { ...fleet, error: { message: 'refused', hint: null, since: 2 } } },
      'fleet-lost',
      true,
    ],
    ['the state cannot be read', { stateError: { message: 'no state', hint: null } }, 'state-unreadable', true],
    [
      'the view is gone',
      { connection: 'lost', lostAt: 7, agent: { ...agent, serviceError: error } },
      'view-lost',
      true,
    ],
    ['there is no session', { connection: 'refused', agent: undefined }, 'refused', true],
  ])('when %s', (_, more, kind, stale) => {
    const condition = conditionOf({ ...known, ...more });
    expect([condition.kind, isStale(condition)]).toEqual([kind, stale]);
  });

  it('has since when it is so, and when it is tried again', () => {
    const down = conditionOf({ ...known, agent: { ...agent, serviceError: error } });
    expect(down).toMatchObject({ problem: { message: 'refused', hint: 'wait', since: 5, next: 9 } });
    const since = conditionOf({ ...known, agent: { ...stopped, lastPolledAt: 3 } });
    expect(since).toMatchObject({ problem: { since: 3, next: null } });
    expect(conditionOf({ ...known, connection: 'lost', lostAt: 7 })).toMatchObject({ problem: { since: 7 } });
  });

  it('shows a failure of the service in the banner alone', () => {
    const down = conditionOf({ ...known, agent: { ...agent, serviceError: error } });
    expect(isOwn(error, down)).toBe(false);
    expect(isOwn({ ...error, isOfService: false }, down)).toBe(true);
    // One job that the service does not answer, while it answers others.
    expect(isOwn(error, conditionOf(known))).toBe(true);
  });
});
