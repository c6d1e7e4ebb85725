/** The tables of the store: what their rows are after any calls, and what is shown of them. */
import path from 'node:path';
import { it, onTestFinished } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { newEvent } from '../../src/notify/events.ts';
import { answeredAt, shownJobService, shownSearch } from '../../src/store/jobs.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { shownSync } from '../../src/store/results.ts';
import type { WatchRequest } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { expectCases } from '../support/errors.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const REQUEST: WatchRequest = {
  ...{ jobId: JOB, tasks: ['9001' as TaskId], files: ['stdout'], results: false, settleAfterMs: null },
  source: 'command',
};
const SYNC = { jobId: JOB, startedAt: 1_000, updatedAt: 3_000, endedAt: null, wanted: 2, done: 1, wantedBytes: 9 };
const LEASE = { protocol: 'SftpScp', host: 'h', basePath: '/s', username: 'u', publicKey: 'key' };

/** A row of which a case names some fields, by its only field with a capital letter. */
const ROWS: Readonly<Record<string, (store: Store, value: never) => object>> = {
  Job: (_, jobId) => ({ ...REQUEST, jobId }),
  Ended: () => ({ polledAt: 2, grownAt: 2, refused: 0, failures: 1, error: null }),
  Error: (_, code) => ({ code, message: 'no', hint: null, since: 3 }),
  File: ({ liveFiles }, file: string) => liveFiles.ofJob(JOB).find((row) => `${row.taskId} ${row.file}` === file) ?? {},
  Search: ({ taskSearches }) => taskSearches.get(JOB) ?? {},
  Row: ({ jobs }) => jobs.get(JOB) ?? {},
  Delivery: (_, line: number) => ({
    ...{ deliveryId: `${line}`, jobId: JOB, rule: 'rule', madeAt: line, dueAt: line, attempts: 0, lastError: null },
    event: { ...newEvent('match', line, { count: 1 }), id: `${line}` },
  }),
  Lease: (_, leaseId) => ({ ...LEASE, leaseId }),
  Notified: () => ({
    jobId: JOB,
    jobState: null,
    startedAt: null,
    watchState: 'watched',
    stalledAt: null,
    hasFiles: true,
  }),
  Rule: (_, source) => ({ source, include: ['a*'], exclude: ['b'], maxAgeMs: 3, maxJobs: 4, since: 5 }),
  Result: (_, name) => ({ ...NEW_RESULT, jobId: JOB, state: 'failed', reason: 'gone', bytes: null, name }),
  Sync: () => ({ ...SYNC, bytes: 5, way: null, fallback: null, arriving: [] }),
  Listing: () => ({ requestedAt: 1, nextRequestAt: 2, failures: 3, error: null, listed: 4, waiting: 5 }),
};

function rowsIn(value: unknown, store: Store): unknown {
  if (Array.isArray(value)) return value.map((each) => rowsIn(each, store));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, part]) => [name, rowsIn(part, store)] as const);
  const [kind, of] = fields.find(([name]) => ROWS[name] !== undefined) ?? [];
  const more = Object.fromEntries(fields.filter(([name]) => name !== kind));
  return kind === undefined ? more : { ...ROWS[kind]?.(store, of as never), ...more };
}

/** `key=value` of an object, without its other fields if some are asked for. */
function shown(value: unknown, fields: readonly string[] = []): string {
  if (value instanceof Map) return shown(Object.fromEntries(value), fields);
  if (value instanceof Set) return shown([...value], fields);
  if (Array.isArray(value)) return `[${value.map((each) => shown(each, fields)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const all = Object.entries(value).filter(([name]) => fields.length === 0 || fields.includes(name));
  return `{${all.map(([name, part]) => `${name}=${shown(part)}`).join(' ')}}`;
}

const FUNCTIONS = { answeredAt, shownJobService, shownSearch, shownSync };

it('the tables hold what is written in rows.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'rows.txt'), (written) => {
    const directory = temporaryDirectory();
    const open = (owner: boolean) => {
      const store = new Store({ directory, service: 'x', owner, now: () => 1 });
      onTestFinished(() => store.close());
      return store;
    };
    const [own, results] = [open(true), [] as string[]];
    own.jobs.watch(REQUEST, 1);
    for (const step of written.split('; ')) {
      const [, times = 1, other, name = '', given = '', fields] =
        /^(?:(\d+) times )?(by another )?([\w.]+)(?: (?!->)(.*?))?(?: -> (.*))?$/.exec(step) ?? [];
      const store = other === undefined ? own : open(false);
      const [method = '', ...tables] = name.split('.').reverse();
      const outages = { saveOutage: saveOutage.bind(null, directory), outageIn: outageIn.bind(null, directory) };
      const on = tables.reduceRight<object>(
        (table, part) => table[part as keyof typeof table],
        tables.length === 0 ? { ...FUNCTIONS, ...outages } : store,
      );
      const work = on[method as keyof typeof on] as (...args: unknown[]) => unknown;
      for (let time = 0; time < Number(times); time++) {
        const args = rowsIn(JSON.parse(`[${given}]`), store) as unknown[];
        let result: unknown;
        store.transaction(() => {
          result = work.apply(on, args);
        });
        if (!/^(?:ask|add)$/.test(method) && (result !== undefined || /^(?:get|position|outageIn)$/.test(method)))
          results.push(`${step}: ${shown(result, fields?.split(' '))}`);
      }
    }
    return results;
  });
});
