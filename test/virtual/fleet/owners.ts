/** What the statements of src/fleet for agents and owners do to the tables of the simulated PostgreSQL. */
import { keyOf, type Row, type Transaction } from './tables.ts';

export type Values = readonly unknown[];
export type Statement = (on: Transaction, values: Values, text: string) => unknown[];

/** As in src/fleet/owners/claims.ts, src/fleet/agents/agents.ts. */
const MAX_FREED = 100;
export const DAY_MS = 86_400_000;

export const texts = (value: unknown) => value as readonly string[];
export const at = (row: Row, column: string) => Number(row[column]);
export const byKey = (a: readonly [string, Row], b: readonly [string, Row]) => (a[0] < b[0] ? -1 : 1);

const isSilent = (on: Transaction, agent: Row) => at(agent, 'seen_at') <= on.now - at(agent, 'lease_ms');
const isSeen = (on: Transaction, agent: Row) => !isSilent(on, agent) && agent['is_ended'] !== true;
const isWaiting = (job: Row) => job['waiting_since'] !== null;
const jobsOf = (on: Transaction, owner: unknown) => on.all('jobs', (job) => job['owner'] === owner);
/** `least` of PostgreSQL passes over null. */
const least = (...numbers: readonly unknown[]) =>
  Math.min(...numbers.filter((one): one is number => typeof one === 'number'));

export function job(on: Transaction, jobId: unknown): Row | undefined {
  return on.get('jobs', keyOf(jobId));
}

/** The rows of these jobs, each changed. */
export function changeJobs(on: Transaction, ids: readonly string[], columnsOf: (row: Row) => Row): Row[] {
  return ids.flatMap((jobId) => {
    const row = job(on, jobId);
    return row === undefined ? [] : [on.change('jobs', keyOf(jobId), row, columnsOf(row))];
  });
}

const NEW_AGENT = { capacity: null, lacks: null, not_followed: 0, lag_ms: null };

function summaryOf(on: Transaction, name: unknown): Row {
  const agents = on
    .all('agents', (agent) => isSeen(on, agent) && agent['is_draining'] !== true)
    .sort(byKey)
    .map(([, agent]) => {
      const jobs = jobsOf(on, agent['name']).length;
      const [most, capacity] = [agent['most_jobs'], agent['capacity']];
      return { name: agent['name'], mostJobs: least(most, capacity), maxJobs: most, jobs };
    });
  const owned = on.all('jobs', ({ owner }) => owner !== null);
  const silentOf = ({ owner }: Row) => {
    const agent = on.get('agents', keyOf(owner));
    return agent !== undefined && isSilent(on, agent);
  };
  const waiting = on.all('jobs', isWaiting).map(([, row]) => at(row, 'waiting_since'));
  return {
    ...{
      agents,
      alive: on.all('agents', (agent) => isSeen(on, agent)).length,
      jobs: on.all('jobs', (row) => row['owner'] !== null || isWaiting(row)).length,
      silent: owned.filter(([, row]) => silentOf(row)).length,
    },
    own: jobsOf(on, name).map(([, { job_id: jobId, attempt }]) => ({ jobId, attempt })),
    ...{ waiting: waiting.length, waitingMs: waiting.length === 0 ? 0 : on.now - Math.min(...waiting) },
  };
}

/** As `HAS_HEARTBEAT` of src/fleet/owners/claims.ts. */
function hasHeartbeat(on: Transaction, [seenAt, name]: Values): boolean {
  if (seenAt === null) return true;
  const own = on.get('agents', keyOf(name));
  return own !== undefined && at(own, 'seen_at') >= Number(seenAt);
}

function renewed(on: Transaction, [name, instance, ...values]: Values): unknown[] {
  const key = keyOf(name);
  on.lock('agents', key);
  const agent = on.get('agents', key);
  const [lag_ms, calls_last_minute, is_draining, capacity, lacks, not_followed, seenAt] = values;
  if (agent?.['instance'] !== instance || seenAt === null || at(agent as Row, 'seen_at') < Number(seenAt)) return [];
  const reported = { lag_ms, calls_last_minute, is_draining, capacity, lacks, not_followed };
  on.change('agents', key, agent as Row, { ...reported, seen_at: on.now, is_ended: false });
  return [{ drainAsked: agent?.['drain_asked'], seenAt: String(on.now) }];
}

function joined(on: Transaction, values: Values): unknown[] {
  const [name, state_id, instance, most_jobs, lease_ms, mirror, about, seenAt] = values;
  const key = keyOf(name);
  on.lock('agents', key);
  const before = on.get('agents', key);
  if (before !== undefined && before['state_id'] !== state_id && isSeen(on, before)) return [];
  const isNewer = before !== undefined && seenAt !== null && at(before, 'seen_at') > Number(seenAt);
  if (isNewer && before['instance'] !== instance) return [];
  const times = { started_at: on.now, seen_at: on.now };
  const flags = { is_ended: false, is_draining: false, drain_asked: false };
  const row = { name, state_id, instance, most_jobs, lease_ms, mirror, about: JSON.parse(String(about)) as unknown };
  on.put('agents', key, { ...NEW_AGENT, calls_last_minute: 0, ...before, ...row, ...times, ...flags });
  return [{ seenAt: String(on.now) }];
}

/** The longest waiting jobs that no other transaction has. */
function taken(on: Transaction, heartbeat: Values, text: string): unknown[] {
  if (!hasHeartbeat(on, heartbeat)) return [];
  const free = on.all('jobs', isWaiting).filter(([key]) => on.canLock('jobs', key));
  const oldest = free.sort((a, b) => at(a[1], 'waiting_since') - at(b[1], 'waiting_since') || byKey(a, b));
  const ids = oldest.slice(0, Number(/LIMIT (\d+)/.exec(text)?.[1])).map(([, row]) => String(row['job_id']));
  const changed = { owner: heartbeat[1], taken_at: on.clockNow, waiting_since: null };
  const jobs = changeJobs(on, ids, (row) => ({ ...changed, attempt: at(row, 'attempt') + 1 }));
  return jobs.map(({ job_id: jobId, attempt, mirror }) => {
    const isTakeover = on.get('attempts', keyOf(jobId, Number(attempt) - 1))?.['how'] === 'lost';
    return { jobId, attempt, mirror, isTakeover };
  });
}

/** Jobs of agents whose leases expired, where no other agent has a row of them. */
function freed(on: Transaction, heartbeat: Values): unknown[] {
  if (!hasHeartbeat(on, heartbeat)) return [];
  const found: string[] = [];
  for (const [key, row] of on.all('jobs', ({ owner }) => owner !== null).sort(byKey)) {
    const agentKey = keyOf(row['owner']);
    const agent = on.get('agents', agentKey);
    if (found.length === MAX_FREED || agent === undefined || !isSilent(on, agent)) continue;
    if (!on.canLock('agents', agentKey) || !on.canLock('jobs', key)) continue;
    on.lock('agents', agentKey);
    on.lock('jobs', key);
    found.push(String(row['job_id']));
  }
  return changeJobs(on, found, () => ({ owner: null, waiting_since: on.now })).map(({ job_id: jobId }) => ({ jobId }));
}

/** By how they begin, without line breaks. */
export const OF_OWNERS: Readonly<Record<string, Statement>> = {
  'WITH free AS (': taken,
  'INSERT INTO {s}.attempts (job_id, attempt, agent, taken_at)': (on, [ids]) => {
    for (const jobId of texts(ids)) {
      const { attempt, owner, taken_at } = job(on, jobId) ?? {};
      on.put('attempts', keyOf(jobId, attempt), { job_id: jobId, agent: owner, taken_at, ended_at: null, how: null });
    }
    return [];
  },
  'SELECT job_id AS "jobId", attempt, mirror, false AS "isTakeover"': (on, [seenAt, owner]) => {
    const owned = hasHeartbeat(on, [seenAt, owner]) ? jobsOf(on, owner) : [];
    return owned.map(([, { job_id: jobId, attempt, mirror }]) => ({ jobId, attempt, mirror, isTakeover: false }));
  },
  'SELECT jobs.job_id AS "jobId" FROM {s}.jobs JOIN unnest': (on, [owner, ids, attempts, instance]) => {
    const agent = on.get('agents', keyOf(owner));
    if (agent !== undefined && agent['instance'] !== instance) return [];
    const wanted = texts(ids).map((jobId, index) => [jobId, (attempts as readonly number[])[index]] as const);
    return [...wanted]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([jobId, attempt]) => {
        const isOwned = () => job(on, jobId)?.['owner'] === owner && job(on, jobId)?.['attempt'] === attempt;
        if (!isOwned()) return [];
        on.lock('jobs', keyOf(jobId));
        return [{ jobId }];
      });
  },
  'UPDATE {s}.jobs SET owner = NULL, waiting_since = CASE': (on, [ids, waits]) => {
    changeJobs(on, texts(ids), () => ({ owner: null, waiting_since: waits === true ? on.now : null }));
    return [];
  },
  'UPDATE {s}.attempts SET ended_at = clock_timestamp()': (on, [ids, how]) => {
    const isEnding = (one: Row) => texts(ids).includes(String(one['job_id'])) && one['ended_at'] === null;
    for (const [key, row] of on.all('attempts', isEnding))
      on.change('attempts', key, row, { ended_at: on.clockNow, how });
    return [];
  },
  'WITH silent AS (': freed,
  'INSERT INTO {s}.agents': joined,
  'UPDATE {s}.agents SET seen_at = now(), is_ended = false': renewed,
  'SELECT (SELECT coalesce(json_agg(json_build_object(': (on, [name]) => [summaryOf(on, name)],
  'SELECT name FROM {s}.agents WHERE name <> $1 AND mirror <> $2': (on, [name, mirror]) =>
    on
      .all('agents', (one) => one['name'] !== name && one['mirror'] !== mirror && isSeen(on, one))
      .sort(byKey)
      .slice(0, 1)
      .map(([, one]) => ({ name: one['name'] })),
  'SELECT name, most_jobs AS "maxJobs"': (on) =>
    on
      .all('agents', (one) => at(one, 'seen_at') > on.now - 7 * DAY_MS && one['is_ended'] !== true)
      .sort(byKey)
      .map(([, one]) => ({
        ...{ name: one['name'], maxJobs: one['most_jobs'], jobs: jobsOf(on, one['name']).length },
        ...{ pollAgeMs: one['lag_ms'], callsLastMinute: one['calls_last_minute'] },
        ...{ lacks: one['lacks'], notFollowed: one['not_followed'], about: one['about'] },
        ...{ startedAt: one['started_at'], seenAt: one['seen_at'] },
        state: !isSeen(on, one) ? 'gone' : one['is_draining'] === true ? 'draining' : 'alive',
      })),
  'UPDATE {s}.agents SET is_ended = true': (on, [name, instance]) => {
    const agent = on.get('agents', keyOf(name));
    if (agent?.['instance'] === instance) on.change('agents', keyOf(name), agent as Row, { is_ended: true });
    return [];
  },
};
