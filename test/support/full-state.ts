/** A state in which everything has happened, for what shows it. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { jobTimeOf, type TaskInformation } from '../../src/job-information.ts';
import { newEvent } from '../../src/notify/events.ts';
import { Rule } from '../../src/notify/rules.ts';
import type { JobRow, LiveFileRow, ResultRow, TaskSearchRow, WatchRequest } from '../../src/store/rows.ts';
import { SILENT } from './errors.ts';
import { NEW_RESULT } from './live-place.ts';
import { jobOf, tasksOf } from './model-remote.ts';

export const NOW = Date.parse('2026-03-01T12:00:00Z');
const minutes = (count: number) => NOW - count * 60_000;
export const [FAILING, SEARCHED, ENDED, SETTLED] = ['501' as JobId, '502' as JobId, '503' as JobId, '504' as JobId];
export const TASK = '9001' as TaskId;

/** What the agent of this directory has stored, and its configuration; the store is closed with the test. */
export async function writeState(directory: string) {
  const configFile = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  const sections = {
    service: { protocol: 'rest', baseUrl: 'http://127.0.0.1:9' },
    auth: { username: 'alice', passwordFile: 'password' },
    mirror: { directory: 'mirror', minFreeBytes: 0 },
    state: { directory: 'state' },
    watch: [{ job: ENDED }],
    notify: [
      { on: ['failed', 'stalled'], mail: 'alice@example.org' },
      { on: ['finished'], url: 'https://hooks.example.org/secret' },
    ],
  };
  fs.writeFileSync(configFile, JSON.stringify(sections));
  const config = await loadConfig(configFile);
  const { store, close } = openOwnStore(config, SILENT);
  onTestFinished(close);
  const order = { tasks: [TASK], files: ['stdout', 'stderr'], results: true, settleAfterMs: null } as const;
  const usual: Omit<WatchRequest, 'jobId'> = { ...order, source: 'command' };
  const error = { code: 'timeout', message: 'no answer', hint: 'look at the network', since: minutes(7) } as const;
  store.transaction(() => {
    store.jobs.watch({ ...usual, jobId: FAILING, stallAfterMs: 60_000 }, minutes(60));
    store.jobs.watch({ ...usual, jobId: SEARCHED, tasks: null, results: false }, minutes(50));
    store.jobs.watch({ ...usual, jobId: ENDED }, minutes(40));
    store.jobs.watch({ ...usual, jobId: SETTLED, tasks: ['9004' as TaskId] }, minutes(30));
    store.jobs.save({
      ...(store.jobs.get(FAILING) as JobRow),
      ...{ polledAt: minutes(2), grownAt: minutes(3), stalledAt: minutes(4), refused: 5, failures: 6 },
      error: { ...error, retryAt: NOW + 90_000 },
    });
    store.jobs.unwatch(ENDED, 'ended');
    store.jobs.setState(SETTLED, 'settled');
    const [stderr, stdout] = store.liveFiles.ofJob(FAILING) as [LiveFileRow, LiveFileRow];
    const rewritten = {
      kind: 'rewritten',
      at: 17,
      reason: 'other bytes at 17',
      generation: 2,
      seenAt: minutes(9),
    } as const;
    const grown = { position: 12_345, generation: 3, grownAt: minutes(3), verified: 12_345, mismatches: [rewritten] };
    store.liveFiles.save({ ...stdout, ...grown });
    const readOnly = { ...error, message: 'the mirror is read-only', hint: null };
    store.liveFiles.save({ ...stderr, position: 11, error: readOnly });
    for (const row of store.liveFiles.ofJob(SETTLED))
      store.liveFiles.save({ ...row, position: 5, verified: row.file === 'stdout' ? 5 : null, grownAt: minutes(20) });
    const [first, second] = tasksOf('9001', '9002') as [TaskInformation, TaskInformation];
    const times = { submitTime: jobTimeOf('2026-03-01T10:00:00'), startTime: jobTimeOf('2026-03-01T10:30:00') };
    const tasks: TaskInformation[] = [
      { ...second, state: 'Running', name: 'solve' },
      { ...first, state: 'Failed', errorMessage: 'out of memory' },
    ];
    const reported = { since: minutes(80), reportedAt: minutes(1) };
    const running = jobOf(FAILING, 'Running', { name: 'heat', ...times, tasks });
    store.jobInformation.save({ jobId: FAILING, information: running, ...reported });
    const canceled = jobOf(SETTLED, 'Canceled', { tasks: tasksOf('9004') });
    store.jobInformation.save({ jobId: SETTLED, information: canceled, since: minutes(25), reportedAt: minutes(25) });
    const search = { searchedAt: minutes(2), nextSearchAt: NOW + 45_000, hint: 'no probe found a file' };
    store.taskSearches.save({ ...(store.taskSearches.get(SEARCHED) as TaskSearchRow), ...search });
    const listing = { requestedAt: minutes(1), nextRequestAt: NOW + 30_000, failures: 2, listed: 4, waiting: 8 };
    store.jobInformation.saveListing({ ...listing, error: { ...error, message: 'the list is broken' } });
    const rule = { source: 'command', include: ['**'], exclude: [], maxAgeMs: 86_400_000, maxJobs: 3 } as const;
    store.watchMine.save({ ...rule, since: minutes(90) });
    const result = (name: string, more: Partial<ResultRow>): ResultRow => ({
      ...{ ...NEW_RESULT, jobId: FAILING, name, bytes: 2_048, sha256: 'aa' },
      ...{ listedAt: minutes(6), fetchedAt: minutes(5), dueAt: NOW, intervalMs: 1_000, ...more },
    });
    store.results.saveAll([
      result('/9001/a.dat', {}),
      result('/9001/b.dat', { state: 'failed', reason: 'no space left on device', bytes: null }),
      result('/9001/c.dat', { state: 'failed', reason: 'no space left on device', bytes: null }),
      result('/9001/d.dat', { state: 'listed', reason: 'not asked for yet', bytes: null }),
      result('/9001/e.dat', { state: 'left-out', reason: 'excluded', bytes: 1 }),
      result('/../f.dat', { state: 'refused', reason: 'unsafe name' }),
      result('/9001/g.dat', { state: 'in-flux', reason: 'changed meanwhile' }),
      result('/9001/h.txt', { state: 'linked', bytes: null, sha256: null, live: '9001/stdout' }),
    ]);
    const ended = { startedAt: minutes(6), updatedAt: minutes(5), endedAt: minutes(5), wanted: 9, done: 7 };
    const way = { wantedBytes: null, bytes: 6_144_000, way: 'rsync', fallback: 'the key was refused', arriving: [] };
    store.resultSyncs.save({ jobId: FAILING, ...ended, ...way });
    const [mail, hook] = config.notify.map((settings) => new Rule(settings).id);
    const delivery = { jobId: FAILING, event: newEvent('failed', minutes(8), {}), madeAt: minutes(8), lastError: null };
    const givenUp = { ...delivery, deliveryId: 'b', rule: hook ?? '', attempts: 20, lastError: 'status 500' };
    store.outbox.save({ ...givenUp, jobId: null, dueAt: null });
    const waiting = { rule: mail ?? '', dueAt: NOW + 120_000, attempts: 3, lastError: 'no mail server' };
    const others = { rule: 'of a former configuration', dueAt: minutes(1), attempts: 0 };
    store.outbox.add([
      { ...delivery, deliveryId: 'a', ...waiting },
      { ...delivery, deliveryId: 'c', ...others, event: { ...delivery.event, count: 4, jobId: FAILING } },
    ]);
  });
  for (const [jobId, task, name, text] of [
    [FAILING, '9001', 'stdout', 'one\ntwo\nError: three\nfour\nfive\n'],
    [FAILING, '9001', 'stdout.1', 'older\nError: before\n'],
    [FAILING, '9001', 'stderr', 'fatal\u001b[2J: two\n'],
    [SETTLED, '9004', 'stdout', 'done\n'],
  ] as const) {
    const mirror = path.join(config.mirror.directory, jobId, 'live', task, name.replace(/^(\w+)/, '$1.log'));
    fs.mkdirSync(path.dirname(mirror), { recursive: true });
    fs.writeFileSync(mirror, text);
    const at = minutes(name === 'stderr' ? 600 : 10) / 1_000;
    fs.utimesSync(mirror, at, at);
  }
  return { configFile, config, store };
}
