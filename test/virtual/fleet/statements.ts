/**
 * What each statement of src/fleet does to the tables of the simulated PostgreSQL: those of jobs, commands and rows here,
 * the others in `owners.ts`. A statement that is in neither ends the run, so that none is forgotten;
 * `long/contract.test.ts` runs them beside a real server.
 */
import { FORMAT } from '../../../src/fleet/database/tables.ts';
import { at, changeJobs, DAY_MS, job, OF_OWNERS, type Statement, texts, type Values } from './owners.ts';
import { keyOf, type Row, type Transaction } from './tables.ts';

const SCHEMA = 'jobtail';
const orderOf = (a: readonly [string, Row], b: readonly [string, Row]) => at(a[1], 'order_id') - at(b[1], 'order_id');

const NEW_JOB = { state: 'ordered', source: 'command', owner: null, attempt: 0, taken_at: null, mirror: null };

const parsed = (text: string | null | undefined) => (text == null ? null : (JSON.parse(text) as unknown));
const rowOf = (row: Row) => ({ jobId: row['job_id'], table: row['kind'], key: row['key'], row: row['row'] });
const nameOf = (row: Row) => [row['job_id'], row['kind'], row['key']].map(String);

function isAfter(row: Row, last: readonly unknown[]): boolean {
  const [a, b] = [nameOf(row), last.map(String)];
  const index = a.findIndex((part, place) => part !== b[place]);
  return index >= 0 && String(a[index]) > String(b[index]);
}

const openedBy = (order: Row) => ({
  ...{ commandId: String(order['order_id']), jobId: order['job_id'], kind: order['kind'] },
  ...{ body: order['body'], isApplied: order['is_applied'] },
});

/** By how they begin, without line breaks; of several, the longest. */
const STATEMENTS: Readonly<Record<string, Statement>> = {
  ...OF_OWNERS,
  "SELECT to_regclass('{s}.version')": () => [{ found: 'version' }],
  'SELECT version FROM {s}.version': () => [{ version: FORMAT }],
  'SELECT job_id AS "jobId", kind AS "table", key, row::text AS row FROM {s}.rows WHERE job_id = ANY($1)': (
    on,
    [ids, ...last],
  ) => {
    const isMeant = (row: Row) =>
      texts(ids).includes(String(row['job_id'])) &&
      (last.length === 0 ? row['kind'] === 'jobs' : row['kind'] !== 'jobs' && isAfter(row, last));
    const found = on.all('rows', isMeant).map(([, row]) => row);
    return found.sort((a, b) => (isAfter(a, nameOf(b)) ? 1 : -1)).map(rowOf);
  },
  'INSERT INTO {s}.rows': (on, [ids, kinds, keys, rows]) => {
    for (const [index, job_id] of texts(ids).entries()) {
      const [kind, key, row] = [texts(kinds)[index], texts(keys)[index], texts(rows)[index]];
      on.put('rows', keyOf(job_id, kind, key), { job_id, kind, key, row });
    }
    return [];
  },
  'DELETE FROM {s}.rows WHERE (job_id, kind, key) IN': (on, [ids, kinds, keys]) => {
    for (const [index, jobId] of texts(ids).entries())
      on.remove('rows', keyOf(jobId, texts(kinds)[index], texts(keys)[index]));
    return [];
  },
  'UPDATE {s}.jobs SET state = kept.row': (on, [ids, rows]) => {
    for (const [index, jobId] of texts(ids).entries()) {
      const { state, source } = JSON.parse(String(texts(rows)[index])) as Row;
      const row = job(on, jobId);
      if (row !== undefined && (row['state'] !== state || row['source'] !== source))
        on.change('jobs', keyOf(jobId), row, { state, source });
    }
    return [];
  },
  'UPDATE {s}.jobs SET mirror = $2': (on, [ids, mirror]) => {
    changeJobs(on, texts(ids), () => ({ mirror }));
    return [];
  },
  'WITH given AS (': (on, [ids, kinds, bodies, sources]) => {
    const given = texts(ids).map((job_id, index) => ({ job_id, index }));
    for (const { job_id, index } of [...given].sort((a, b) => (a.job_id < b.job_id ? -1 : 1))) {
      on.lock('jobs', keyOf(job_id));
      const row = job(on, job_id) ?? { ...NEW_JOB, job_id, source: texts(sources)[index], waiting_since: null };
      const waiting_since = row['owner'] === null ? (row['waiting_since'] ?? on.now) : null;
      on.put('jobs', keyOf(job_id), { ...row, waiting_since });
    }
    return given.map(({ job_id, index }) => {
      const order_id = on.tables.nextOrder();
      const [kind, body] = [texts(kinds)[index], parsed(texts(bodies)[index])];
      const row = { order_id, job_id, kind, body, made_at: on.now, is_applied: false, answer: null };
      on.put('orders', keyOf(order_id), row);
      return { commandId: String(order_id) };
    });
  },
  'SELECT pg_notify(': (on) => {
    on.notices.add(`${SCHEMA}_orders`);
    return [{}];
  },
  'SELECT answer FROM {s}.orders': (on, [id]) => {
    const order = on.get('orders', keyOf(Number(id)));
    return order === undefined ? [] : [{ answer: order['answer'] }];
  },
  'SELECT order_id::text AS "commandId"': (on, [owner, known], text) =>
    on
      .all('orders', (one) => one['answer'] === null && job(on, one['job_id'])?.['owner'] === owner)
      .filter(([, one]) => !texts(known).includes(String(one['order_id'])))
      .sort(orderOf)
      .slice(0, Number(/LIMIT (\d+)$/.exec(text)?.[1]))
      .map(([, one]) => openedBy(one)),
  'UPDATE {s}.orders SET is_applied = true': (on, [ids, answers]) => {
    for (const [index, id] of texts(ids).entries()) {
      const order = on.get('orders', keyOf(Number(id)));
      const answer = parsed(texts(answers)[index]);
      if (order !== undefined) on.change('orders', keyOf(Number(id)), order, { is_applied: true, answer });
    }
    return [];
  },
  'SELECT job_id AS "jobId" FROM {s}.orders WHERE job_id = ANY($1) AND answer IS NULL': (on, [ids]) =>
    on
      .all('orders', (one) => one['answer'] === null && texts(ids).includes(String(one['job_id'])))
      .map(([, { job_id: jobId }]) => ({ jobId })),
  'WITH gone AS (DELETE FROM {s}.configured': (on, [agent, ids]) => {
    const isGone = (one: Row) => one['agent'] === agent && !texts(ids).includes(String(one['job_id']));
    const gone = on.all('configured', isGone).map(([key, { job_id: jobId }]) => {
      on.remove('configured', key);
      return { jobId };
    });
    return gone.filter(({ jobId }) => on.all('configured', (one) => one['job_id'] === jobId).length === 0);
  },
  'WITH wanted AS (SELECT * FROM unnest(': (on, [agent, ids, requests]) =>
    texts(ids).flatMap((job_id, index) => {
      const text = texts(requests)[index];
      const [row, before] = [job(on, job_id), on.get('configured', keyOf(agent, job_id))];
      if (before?.['text'] !== text) on.put('configured', keyOf(agent, job_id), { agent, job_id, text });
      if (row !== undefined && before?.['text'] === text) return [];
      return [{ jobId: job_id, state: row?.['state'] ?? null, source: row?.['source'] ?? null }];
    }),
  'SELECT rule FROM {s}.rules': (on) => on.all('rules').map(([, { rule }]) => ({ rule })),
  'INSERT INTO {s}.habits': (on, [service, names, values]) => {
    for (const [index, name] of texts(names).entries())
      on.put('habits', keyOf(service, name), { service, name, value: texts(values)[index] });
    return [];
  },
  'DELETE FROM {s}.orders WHERE answer IS NOT NULL': (on) => {
    const isOld = (one: Row) => one['answer'] !== null && at(one, 'made_at') < on.now - DAY_MS;
    for (const [key] of on.all('orders', isOld)) on.remove('orders', key);
    return [];
  },
  'DELETE FROM {s}.attempts WHERE ended_at <': (on) => {
    const isOld = (one: Row) => one['ended_at'] !== null && at(one, 'ended_at') < on.now - 30 * DAY_MS;
    for (const [key] of on.all('attempts', isOld)) on.remove('attempts', key);
    return [];
  },
  'DELETE FROM {s}.configured WHERE NOT EXISTS': (on) => {
    const isThere = (name: unknown) =>
      on.all('agents', (agent) => agent['name'] === name && at(agent, 'seen_at') > on.now - 7 * DAY_MS).length > 0;
    for (const [key] of on.all('configured', ({ agent }) => !isThere(agent))) on.remove('configured', key);
    return [];
  },
  'SELECT job_id AS "jobId" FROM {s}.jobs': (on) => on.all('jobs').map(([, { job_id: jobId }]) => ({ jobId })),
  'SELECT job_id AS "jobId" FROM unnest($1::text[]) WITH ORDINALITY': (on, [ids, max]) => {
    const states = ['ordered', 'watched', 'ending'];
    const isOfRule = (one: Row) => one['source'] === 'mine' && states.includes(String(one['state']));
    const room = Math.max(0, Number(max) - on.all('jobs', isOfRule).length);
    const fresh = texts(ids).filter((jobId) => job(on, jobId) === undefined);
    return fresh.slice(0, room).map((jobId) => ({ jobId }));
  },
  'SELECT jobs.job_id AS "jobId", row::text AS row FROM {s}.jobs LEFT JOIN': (on) =>
    on
      .all('jobs', ({ state }) => state === 'settled')
      .map(([, { job_id: jobId }]) => {
        const row = on.get('rows', keyOf(jobId, 'job_information', '[]'))?.['row'] ?? null;
        return { jobId, row };
      }),
  'SELECT pg_advisory_xact_lock(': (on) => {
    on.lock('locks', 'mine');
    return [{}];
  },
};

const known = new Map<string, Statement>();

export class Unknown extends Error {}

export function execute(on: Transaction, text: string, values: Values): unknown[] {
  return statementOf(text)(on, values, text);
}

function statementOf(text: string): Statement {
  const found = known.get(text);
  if (found !== undefined) return found;
  const plain = text.replaceAll(/\s+/g, ' ').replaceAll(`${SCHEMA}.`, '{s}.').trim();
  const starts = Object.keys(STATEMENTS).filter((start) => plain.startsWith(start));
  const longest = starts.sort((a, b) => b.length - a.length)[0];
  const statement = longest === undefined ? undefined : STATEMENTS[longest];
  if (statement === undefined) throw new Unknown(`the simulated database does not have: ${plain}`);
  known.set(text, statement);
  return statement;
}
