/** What stands in the database of a fleet is hostile: other roles may write there, and newer agents do. */
import { describe, expect, it } from 'vitest';
import { Border, type FoundRow } from '../../src/fleet/rows/border.ts';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { liveParts, resultsParts } from '../../src/safe-names.ts';
import { orderFor } from '../support/fleet-parts.ts';

const live = (columns: object, key = '["9001","stdout"]'): FoundRow => {
  const row = { job_id: '1', task_id: '9001', file: 'stdout', position: 5, copy_mark: null, ...columns };
  return { jobId: '1', table: 'live_files', key, row: JSON.stringify(row) };
};

const delivery = (event: object): FoundRow => {
  const sound = {
    id: '2f1c9a52-8f0e-4a54-9d8e-3f1c9a528f0e',
    type: 'finished',
    time: '2026-01-02T03:04:05.678Z',
    count: 1,
  };
  const row = { delivery_id: 'd', job_id: '1', rule: 'r', event: JSON.stringify({ ...sound, ...event }), attempts: 0 };
  return { jobId: '1', table: 'outbox', key: '["d"]', row: JSON.stringify(row) };
};

/** The value with each of its parts in turn, and what is around them, replaced by an object. */
function* brokenOf(value: unknown, path = ''): Generator<[path: string, broken: unknown]> {
  yield [path, value === null || Array.isArray(value) || typeof value !== 'object' ? {} : 5];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value))
    for (const [at, broken] of brokenOf(part, `${path}.${key}`))
      yield [at, Array.isArray(value) ? value.with(Number(key), broken) : { ...value, [key]: broken }];
}

describe('the border', () => {
  const reports: string[] = [];
  const border = new Border((what) => reports.push(what));

  it('lets sound rows through, also those with a column that a newer agent added', () => {
    for (const row of [
      live({}),
      delivery({}),
      live({ copy_mark: '3', added: 'later', inexact: '[{"start":1,"length":2}]' }),
    ])
      expect(border.rows([row])).toEqual([row]);
    expect(reports).toEqual([]);
  });

  it.for<[what: string, row: FoundRow, why: string]>([
    ['a task that is a path', live({ task_id: '../../OUT' }, '["../../OUT","stdout"]'), 'column task_id is malformed'],
    ['a task that is not canonical', live({ task_id: '+9001' }, '["+9001","stdout"]'), 'column task_id is malformed'],
    ['the row of another job', live({ job_id: '2' }), 'its columns contradict its key'],
    ['a row that contradicts its key', live({ task_id: '9002' }), 'its columns contradict its key'],
    ['a file that is none', live({ file: 'stdin' }, '["9001","stdin"]'), 'column file is malformed'],
    [
      'a mismatch of an unknown kind',
      live({ mismatches: '[{"kind":"x","at":0,"reason":"","generation":1,"seenAt":1}]' }),
      'column mismatches is malformed',
    ],
    ['a copy mark that is a path', live({ copy_mark: '/../../x' }), 'column copy_mark is malformed'],
    ['a position below zero', live({ position: -1 }), 'column position is malformed'],
    ['a position that is no whole number', live({ position: 0.5 }), 'column position is malformed'],
    ['a column that is an object', live({ checksum: {} }), 'column checksum is malformed'],
    ['inexact ranges that are none', live({ inexact: '[{"start":-1}]' }), 'column inexact is malformed'],
    ['no object', { ...live({}), row: '[]' }, 'not an object'],
    ['a kind of its prototype', { ...live({}), table: 'constructor' }, 'unknown kind'],
    [
      'an event whose id is a header of a mail',
      delivery({ id: 'x\r\nBcc: all@example.org' }),
      'column event is malformed',
    ],
    [
      'an event whose time is a header of a mail',
      delivery({ time: '2026-01-02T03:04:05Z\r\nBcc: all@example.org' }),
      'column event is malformed',
    ],
    ['an event of an unknown type', delivery({ type: 'finished\n' }), 'column event is malformed'],
    ['an unknown kind', { ...live({}), table: 'of_a_newer_agent' }, 'unknown kind'],
    [
      'a job that is a path',
      { jobId: '../OUT', table: 'jobs', key: '[]', row: '{"job_id":"../OUT"}' },
      'its columns contradict its key',
    ],
  ])('refuses and reports %s', ([, row, why]) => {
    const own: string[] = [];
    const other = new Border((what) => own.push(what));
    expect(other.rows([row, live({})])).toEqual([live({})]);
    other.rows([row]);
    expect(own).toEqual([`row of job ${row.jobId} ignored: ${row.table} ${row.key}: ${why}`]);
  });

  it('holds each part of a row to its type, whatever the others are', () => {
    const at = { text: '2026-01-02T03:04:05', ms: 1.5 };
    const times = { startTime: at, endTime: null };
    const task = { id: '9001', name: 'a', state: 'Running', ...times, errorMessage: 'no' };
    const information = {
      ...{ id: '1', name: 'a', state: 'Running', creationTime: at, submitTime: { text: '', ms: null }, ...times },
      tasks: [task, { id: '9002', name: null, state: null, startTime: null, endTime: at, errorMessage: null }],
    };
    const event = {
      ...{ id: '2f1c9a52-8f0e-4a54-9d8e-3f1c9a528f0e', type: 'match', time: '2026-01-02T03:04:05.678Z', count: 1 },
      ...{ jobId: '1', jobName: 'a', taskId: '9001', file: 'stdout', jobs: ['1', '2'] },
      ...{ generation: 0, line: 0, text: '', reason: '' },
    };
    const mismatch = { kind: 'rewritten', at: 0, reason: '', generation: 1, seenAt: 0 };
    const parts = { information, event, mismatches: [mismatch], inexact: [{ start: 0, length: 0 }], files: ['stdout'] };
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

  it('leaves out an error that it does not know, and keeps its row', () => {
    for (const error of ['not json', '5', '{"code":"of-a-newer-agent","message":"","hint":null,"since":1}'])
      expect(border.rows([live({ error })])).toEqual([live({ error: null })]);
  });

  it('understands sound commands alone', () => {
    const order = { commandId: '1', kind: 'watch', jobId: orderFor(1).jobId } as const;
    expect(border.command({ ...order, body: orderFor(1) })).toEqual({ body: orderFor(1) });
    const bodies = [null, 5, {}, orderFor(2), { ...orderFor(1), tasks: ['../9001'] }, { ...orderFor(1), files: ['x'] }];
    for (const body of bodies) expect(border.command({ ...order, body })).toBeUndefined();
    expect(border.command({ ...order, kind: 'later' as 'watch', body: null })).toBeUndefined();
  });

  it('holds a rule to the limits of the configuration', () => {
    const rule = { source: 'command', since: 1, include: ['**'], exclude: [], maxAgeMs: 1, maxJobs: 1 };
    expect(border.rule(rule)).toEqual(rule);
    for (const bad of [{ include: ['**/a/**/b/**/c'] }, { include: [] }, { maxJobs: 1e9 }, { source: 'config' }])
      expect(border.rule({ ...rule, ...bad })).toBeUndefined();
    for (const bad of [{}, 5, [], null]) expect(border.rule(bad)).toBeUndefined();
    const own: string[] = [];
    const other = new Border((what) => own.push(what));
    expect([other.rule({}), other.rule(undefined)]).toEqual([undefined, undefined]);
    other.command({ commandId: '7', kind: 'sync', jobId: orderFor(1).jobId, body: 5 });
    const command = 'command 7 for job 1 ignored: sync: malformed, or of an unknown kind';
    expect(own).toEqual(['rule ignored: watch --mine: malformed', command]);
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
