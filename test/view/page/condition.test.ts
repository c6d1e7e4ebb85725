import { describe, expect, it } from 'vitest';
import type { AgentState } from '../../../src/view/contract/events.ts';
import { conditionOf, isOwn, isStale, type Known } from '../../../src/view/page/condition.ts';

const error = { code: 'unreachable', message: 'refused', hint: 'wait', since: 5, retryAt: 9, isOfService: true };
const agent: AgentState = { running: true, pid: 1, watchMine: null, serviceError: null, lastPolledAt: null };
const known: Known = { connection: 'open', lostAt: null, agent, stateError: null };

describe('the condition of the page', () => {
  it.each<[string, Partial<Known>, string, boolean]>([
    ['all is well', {}, 'current', false],
    ['nothing came so far', { connection: 'connecting', agent: undefined }, 'connecting', false],
    ['nothing of the agent came so far', { agent: undefined }, 'current', false],
    ['the service is down', { agent: { ...agent, serviceError: error } }, 'service-down', true],
    ['no agent runs', { agent: { ...agent, running: false, serviceError: error } }, 'agent-stopped', true],
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
    const stopped = conditionOf({ ...known, agent: { ...agent, running: false, lastPolledAt: 3 } });
    expect(stopped).toMatchObject({ problem: { since: 3, next: null } });
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
