/** What stands in the database of a fleet is hostile: other roles may write there, and newer agents do. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { Border, type FoundRow } from '../../src/fleet/rows/border.ts';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { liveParts, resultsParts } from '../../src/safe-names.ts';
import { expectCases } from '../support/errors.ts';
import { orderFor } from '../support/fleet-parts.ts';

type Given = Readonly<Record<string, unknown>>;

function live(given: Given): FoundRow {
  const row = { job_id: '1', task_id: '9001', file: 'stdout', position: 5, copy_mark: null, ...given };
  return { jobId: '1', table: 'live_files', key: JSON.stringify([row.task_id, row.file]), row: JSON.stringify(row) };
}

const ID = '2f1c9a52-8f0e-4a54-9d8e-3f1c9a528f0e';
const EVENT = { id: ID, type: 'finished', time: '2026-01-02T03:04:05.678Z', count: 1 };
const RULE = { source: 'command', since: 1, include: ['**'], exclude: [], maxAgeMs: 1, maxJobs: 1 };
const shown = (value: unknown) => (value === undefined ? 'ignored' : JSON.stringify(value));

const WORDS: Readonly<Record<string, (border: Border, given: Given) => string>> = {
  live: (border, given) => shown(border.rows([live(given)])[0]?.row),
  outbox: (border, given) => {
    const event = JSON.stringify({ ...EVENT, ...given });
    const row = { delivery_id: 'd', job_id: '1', rule: 'r', event, attempts: 0 };
    return shown(border.rows([{ jobId: '1', table: 'outbox', key: '["d"]', row: JSON.stringify(row) }])[0]?.key);
  },
  row: (border, given) => {
    const row = { ...live({}), ...given };
    return shown(border.rows([row, live({})]).map(({ table, key }) => `${table} ${key}`));
  },
  command: (border, { kind = 'watch', job = '1', body = null }) =>
    shown(border.command({ commandId: '7', kind: kind as 'watch', jobId: job as JobId, body })),
  watch: (border, given) =>
    shown(border.command({ commandId: '7', kind: 'watch', jobId: '1' as JobId, body: { ...orderFor(1), ...given } })),
  rule: (border, given) => shown(border.rule({ ...RULE, ...given })),
  rules: (border, { rule }) => shown(border.rule(rule)),
  about: (border, given) => shown(border.about({ host: 'a', pid: 0, version: '1', view: null, ...given })),
  start: (border, given) => shown(border.startTime(JSON.stringify(given))),
  job: (border, { id }) => shown(border.isJob(id)),
};

it('each row, command and rule is taken or ignored, with the report, as is written in border.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'border.txt'), (written) => {
    const reports: string[] = [];
    const border = new Border((what) => reports.push(what));
    const [, word = '', given = '{}'] = /^(\w+)(?: (.*))?$/.exec(written) ?? [];
    const data = JSON.parse(given.replaceAll(/(\S)\{(\d+)\}/g, (_, one, times) => one.repeat(Number(times)))) as Given;
    const result = WORDS[word]?.(border, data) ?? expect.fail(written);
    // Each is reported once.
    expect(WORDS[word]?.(border, data)).toBe(result);
    return [result, ...reports];
  });
});

/** The value with each of its parts in turn, and what is around them, replaced by an object. */
function* brokenOf(value: unknown, path = ''): Generator<[path: string, broken: unknown]> {
  yield [path, value === null || Array.isArray(value) || typeof value !== 'object' ? {} : 5];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value))
    for (const [at, broken] of brokenOf(part, `${path}.${key}`))
      yield [at, Array.isArray(value) ? value.with(Number(key), broken) : { ...value, [key]: broken }];
}

it('holds each part of a row to its type, whatever the others are', () => {
  const border = new Border(() => {});
  const at = { text: '2026-01-02T03:04:05', ms: 1.5 };
  const times = { startTime: at, endTime: null };
  const task = { id: '9001', name: 'a', state: 'Running', ...times, errorMessage: 'no' };
  const information = {
    ...{ id: '1', name: 'a', state: 'Running', creationTime: at, submitTime: { text: '', ms: null }, ...times },
    tasks: [task, { id: '9002', name: null, state: null, startTime: null, endTime: at, errorMessage: null }],
  };
  const event = {
    ...{ id: ID, type: 'match', time: '2026-01-02T03:04:05.678Z', count: 1 },
    ...{ jobId: '1', jobName: 'a', taskId: '9001', file: 'stdout', jobs: ['1', '2'] },
    ...{ generation: 0, line: 0, text: '', reason: '' },
  };
  const mismatch = { kind: 'rewritten', at: 0, reason: '', generation: 1, seenAt: 0 };
  const inexact = [{ start: 0, length: 0 }];
  const parts = { information, event, mismatches: [mismatch], inexact, files: ['stdout'], arriving: [['a', 0]] };
  const rowOf = (name: string, value: unknown) => live({ [name]: JSON.stringify(value) });
  for (const [name, sound] of Object.entries(parts)) {
    expect(border.rows([rowOf(name, sound)]), name).toHaveLength(1);
    for (const [path, broken] of brokenOf(sound))
      expect(border.rows([rowOf(name, broken)]), `${name}${path}`).toEqual([]);
  }
  const watch = { ...orderFor(1), settleAfterMs: 0, stallAfterMs: 0, seenState: '', results: true };
  const command = (body: unknown) => border.command({ commandId: '1', kind: 'watch', jobId: watch.jobId, body });
  expect(command(watch)).toEqual({ body: watch });
  for (const [path, broken] of brokenOf(watch)) expect(command(broken), path).toBeUndefined();
  const rule = { source: 'command', since: 0, maxAgeMs: 0, include: ['a'], exclude: ['b'], maxJobs: 100_000 };
  expect(border.rule(rule)).toEqual(rule);
  for (const [path, broken] of brokenOf(rule)) expect(border.rule(broken), path).toBeUndefined();
  const about = { host: 'a', pid: 0, version: '1', view: 'https://a/' };
  expect(border.about(about)).toEqual(about);
  const unknown = { host: '', pid: 0, version: '', view: null };
  for (const [path, broken] of brokenOf(about))
    expect(border.about(broken), path).toEqual(path === '.view' ? { ...about, view: null } : unknown);
  const error = { code: 'fault', message: 'a', hint: null, since: 0, retryAt: 0 };
  const kept = live({ error: JSON.stringify(error) });
  expect(border.rows([kept])).toEqual([kept]);
  for (const [path, broken] of brokenOf(error))
    expect(border.rows([live({ error: JSON.stringify(broken) })]), path).toEqual([live({ error: null })]);
});

it('bounds its reports, whose texts are printable', () => {
  const some: string[] = [];
  const other = new Border((what) => some.push(what));
  for (let number = 0; number < 1_100; number++) other.isJob(`\u001b[31m${number}`);
  expect(some).toHaveLength(1_000);
  expect(some.join('')).not.toContain('\u001b');
  const long: string[] = [];
  const third = new Border((what) => long.push(what));
  third.isJob('x'.repeat(101));
  third.refuse({ jobId: 'x'.repeat(500), table: 'jobs', key: '[]' }, 'unknown kind');
  expect(long).toEqual([`job ignored: ${'x'.repeat(100)}: malformed id`, `row of job ${'x'.repeat(289)}`]);
});

it.for(['../OUT', '..', '', '1/2', '+1', '01', ' 1', '1e3', '9223372036854775808'])('no path is built of %j', (id) => {
  const file = 'stdout';
  expect(() => liveParts(id as JobId, { taskId: '1' as TaskId, file })).toThrow('not an id');
  expect(() => liveParts('1' as JobId, { taskId: id as TaskId, file })).toThrow('not an id');
  expect(() => resultsParts(id as JobId)).toThrow('not an id');
  expect(() => liveParts('1' as JobId, { taskId: '1' as TaskId, file: '../x' as LiveFileName })).toThrow(
    'no live file: ../x',
  );
});
