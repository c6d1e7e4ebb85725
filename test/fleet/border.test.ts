/** What stands in the database of a fleet is hostile: other roles may write there, and newer agents do. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { withView } from '../../src/cli/fleet/client.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Border, type FoundRow } from '../../src/fleet/border.ts';
import { FleetClient } from '../../src/fleet/client.ts';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { liveParts, resultsParts } from '../../src/safe-names.ts';
import { MINIMAL } from '../config/files.ts';
import { until } from '../support/e2e-until.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

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

  it.for<[what: string, row: FoundRow]>([
    ['a task that is a path', live({ task_id: '../../OUT' }, '["../../OUT","stdout"]')],
    ['a task that is not canonical', live({ task_id: '+9001' }, '["+9001","stdout"]')],
    ['the row of another job', live({ job_id: '2' })],
    ['a row that contradicts its key', live({ task_id: '9002' })],
    ['a file that is none', live({ file: 'stdin' }, '["9001","stdin"]')],
    [
      'a mismatch of an unknown kind',
      live({ mismatches: '[{"kind":"x","at":0,"reason":"","generation":1,"seenAt":1}]' }),
    ],
    ['a copy mark that is a path', live({ copy_mark: '/../../x' })],
    ['a position below zero', live({ position: -1 })],
    ['a position that is no whole number', live({ position: 0.5 })],
    ['a column that is an object', live({ checksum: {} })],
    ['inexact ranges that are none', live({ inexact: '[{"start":-1}]' })],
    ['no object', { ...live({}), row: '[]' }],
    ['a kind of its prototype', { ...live({}), table: 'constructor' }],
    ['an event whose id is a header of a mail', delivery({ id: 'x\r\nBcc: all@example.org' })],
    ['an event whose time is a header of a mail', delivery({ time: '2026-01-02T03:04:05Z\r\nBcc: all@example.org' })],
    ['an event of an unknown type', delivery({ type: 'finished\n' })],
    ['an unknown kind', { ...live({}), table: 'of_a_newer_agent' }],
    ['a job that is a path', { jobId: '../OUT', table: 'jobs', key: '[]', row: '{"job_id":"../OUT"}' }],
  ])('refuses and reports %s', ([, row]) => {
    const own: string[] = [];
    const other = new Border((what) => own.push(what));
    expect(other.rows([row, live({})])).toEqual([live({})]);
    other.rows([row]);
    expect(own).toHaveLength(1);
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
  });

  it('bounds its reports, whose texts are printable', () => {
    const some: string[] = [];
    const other = new Border((what) => some.push(what));
    for (let number = 0; number < 1_100; number++) other.isJob(`\u001b[31m${number}`);
    expect(some).toHaveLength(1_000);
    expect(some.join('')).not.toContain('\u001b');
  });
});

it.for(['../OUT', '..', '', '1/2', '+1', '01', ' 1', '1e3', '9223372036854775808'])('no path is built of %j', (id) => {
  const file = 'stdout';
  expect(() => liveParts(id as JobId, { taskId: '1' as TaskId, file })).toThrow('not an id');
  expect(() => liveParts('1' as JobId, { taskId: id as TaskId, file })).toThrow('not an id');
  expect(() => resultsParts(id as JobId)).toThrow('not an id');
  expect(() => liveParts('1' as JobId, { taskId: '1' as TaskId, file: '../x' as LiveFileName })).toThrow();
});

const HOSTILE = '../OUT';

it.concurrent('rows that are malformed keep no other job from being followed or shown', {
  ...needs('postgres'),
}, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands } = await fleet.join('command');
  const [broken, sound, later] = [orderFor(1), orderFor(2), orderFor(3)];
  for (const jobId of [HOSTILE as JobId, broken.jobId, sound.jobId])
    await commands.give([{ jobId, kind: 'watch', body: { ...orderFor(Number(jobId)), jobId } }]);
  const rows = [
    [broken.jobId, 'live_files', '["../9001","stdout"]', { job_id: '1', task_id: '../9001', file: 'stdout' }],
    [broken.jobId, 'live_files', '["9001","stderr"]', { job_id: '1', task_id: '9001', file: 'stderr', position: 'x' }],
    [broken.jobId, 'of_a_newer_agent', '[]', { job_id: '1' }],
    [HOSTILE, 'jobs', '[]', { job_id: HOSTILE, state: 'watched' }],
  ];
  for (const [jobId, kind, key, row] of rows)
    await fleet.query('INSERT INTO jobtail.rows VALUES ($1, $2, $3, $4)', [jobId, kind, key, JSON.stringify(row)]);
  await fleet.query(`INSERT INTO jobtail.orders (job_id, kind) VALUES ($1, 'of-a-newer-agent')`, [broken.jobId]);
  await fleet.query(`INSERT INTO jobtail.rules (rule) VALUES ('{"include": 5}')`);
  const { log, followed, store } = fleet.start('anna', {});
  await until('both to be followed', () => followed.has(broken.jobId) && followed.has(sound.jobId));
  await commands.give([{ jobId: later.jobId, kind: 'watch', body: later }]);
  await until('a later one to be followed', () => followed.has(later.jobId));
  expect([...followed].sort()).toEqual(['1', '2', '3']);
  expect(store.liveFiles.ofJob(broken.jobId).every(({ taskId }) => taskId === '9001')).toBe(true);
  await until('the order to be answered', async () => {
    const open = await fleet.query(`SELECT 1 FROM jobtail.orders WHERE kind = 'of-a-newer-agent' AND answer IS NULL`);
    return open.length === 0;
  });
  const ignored = log.filter(({ message }) => message === 'row of the database ignored');
  expect(ignored.length).toBeGreaterThan(3);
  expect(log.filter(({ level }) => level === 'error')).toEqual([]);

  const reports: string[] = [];
  const onIgnored = (what: string) => void reports.push(what);
  const client = await FleetClient.open({ ...fleet.address, onIgnored });
  const configFile = path.join(temporaryDirectory(undefined, test), 'config.yaml');
  fs.writeFileSync(configFile, MINIMAL);
  const config = await loadConfig(configFile);
  const shown = await withView({ config, client }, (view) => view.jobs.all().map(({ jobId }) => jobId));
  expect(shown.sort()).toEqual(['1', '2', '3']);
  expect((await client.owners()).map(({ jobId }) => jobId)).toEqual(['1', '2', '3']);
  expect(reports.length).toBeGreaterThan(2);
  await client.close();
});

it.concurrent('nothing that another role put into the schema public is run', needs('postgres'), async (test) => {
  const fleet = await FleetParts.make(test);
  await fleet.query('CREATE TABLE public.loot (what text)');
  const steal = (what: string) =>
    `LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.loot VALUES ('${what}'); RETURN NULL; END $$`;
  await fleet.query(`CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint ${steal('function')}`);
  await fleet.query(`CREATE FUNCTION public.times(integer, interval) RETURNS interval ${steal('operator')}`);
  await fleet.query('CREATE OPERATOR public.* (LEFTARG = integer, RIGHTARG = interval, FUNCTION = public.times)');
  const { commands } = await fleet.join('command');
  await commands.give([{ jobId: orderFor(1).jobId, kind: 'watch', body: orderFor(1) }]);
  const { member, followed } = fleet.start('anna', {});
  await until('the job to be followed', () => followed.has(orderFor(1).jobId));
  await member.register.follow([{ ...orderFor(2), source: 'mine' }], 10);
  await until('the other to be followed', () => followed.has(orderFor(2).jobId));
  expect(await fleet.query('SELECT * FROM public.loot')).toEqual([]);
});
