/** What is logged of live files and results, at which level, and what is counted. */
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { jobEvents, liveFileEvents, type Observer, resultEvents } from '../../src/daemon/observer.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import type { LiveFileRow } from '../../src/store/rows.ts';

const jobId = '501' as JobId;

function recorded() {
  const [lines, counted]: [unknown[][], unknown[][]] = [[], []];
  const say = (level: string) => (fields: object, phrase: string) => void lines.push([level, phrase, fields]);
  const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const observer: Observer = new EventEmitter();
  for (const name of ['appended', 'fetched', 'tasksFound', 'mismatch', 'jobStatesRead'] as const)
    observer.on(name, (...values: unknown[]) => void counted.push([name, ...values]));
  return { lines, counted, listeners: { log, observer } };
}

const fileOf = (file: LiveFileRow['file'], job = jobId) =>
  ({ jobId: job, taskId: '9001' as TaskId, file }) as LiveFileRow;

it('a mismatch is logged once each; that of a progress file once in ten minutes for each job, with their number', () => {
  const { lines, counted, listeners } = recorded();
  let minutes = 0;
  const { onMismatch, onUnsteady } = liveFileEvents(listeners, () => minutes * 60_000);
  const found = { at: 7, generation: 3, reason: 'because', seenAt: 0 };
  const about = { taskId: '9001', file: 'progress', offset: 7, generation: 3, reason: 'because' };
  onMismatch?.(fileOf('stdout'), { ...found, kind: 'truncated' });
  onMismatch?.(fileOf('stdout'), { ...found, kind: 'truncated' });
  onMismatch?.(fileOf('progress'), { ...found, kind: 'mirror-damaged' });
  onMismatch?.(fileOf('progress'), { ...found, kind: 'mirror-damaged' });
  const truncated = ['info', 'remote file truncated', { ...about, jobId, file: 'stdout' }];
  const repaired = ['warn', 'mirror repaired', { ...about, jobId }];
  expect(lines.splice(0)).toEqual([truncated, truncated, repaired, repaired]);
  for (; minutes < 25; minutes += 1) {
    onMismatch?.(fileOf('progress'), { ...found, kind: 'rewritten' });
    if (minutes === 15) onMismatch?.(fileOf('progress', '502' as JobId), { ...found, kind: 'rewritten' });
  }
  const rewritten = (fields: object) => ['info', 'remote file rewritten', { ...about, jobId, ...fields }];
  const sums = [rewritten({}), rewritten({ count: 10 }), rewritten({ jobId: '502' }), rewritten({ count: 10 })];
  expect(lines.splice(0)).toEqual(sums);
  expect(counted.length).toBe(4 + 26);
  expect(counted.slice(3, 5)).toEqual([
    ['mismatch', 'mirror-damaged'],
    ['mismatch', 'rewritten'],
  ]);
  for (const file of ['log', 'stderr'] as const) onUnsteady?.(fileOf(file));
  const hint = expect.stringContaining('mirror.directory');
  const unsteady = { jobId, taskId: '9001', file: 'log', hint };
  expect(lines).toEqual([['warn', 'inodes or times of mirrors change by themselves', unsteady]]);
});

it('results are logged by what is unusual, and all are counted', () => {
  const { lines, counted, listeners } = recorded();
  const { onAppended, onTasksFound, onJobStates } = jobEvents(listeners);
  onAppended(5);
  onTasksFound(2, 'probes');
  onJobStates('failed');
  const { onFetched, onRefused } = resultEvents(listeners, true);
  onFetched?.(jobId, '/a\u001b.dat', 10, 'first');
  onFetched?.(jobId, '/b.dat', 20, 'same');
  const fresh = ['/1', '/2', '/3', '/4'].map((name) => ({ name, reason: 'bad' }));
  onRefused?.(jobId, { count: 9, fresh });
  for (const isNews of [true, false]) resultEvents(listeners, isNews).onFallback?.(jobId, 'no key');
  const refused = ['/1: bad', '/2: bad', '/3: bad'];
  expect(lines).toEqual([
    ['debug', 'result downloaded', { jobId, file: String.raw`/a\u{001B}.dat`, bytes: 10 }],
    ['warn', 'results refused', { jobId, count: 9, refused, hint: 'agent status 501 shows the reasons' }],
    ['warn', 'results not transferred directly', { jobId, err: 'no key' }],
    ['info', 'results not transferred directly', { jobId, err: 'no key' }],
  ]);
  expect(counted).toEqual([
    ['appended', 5],
    ['tasksFound', 2, 'probes'],
    ['jobStatesRead', 'failed'],
    ['fetched', 10, 'first'],
    ['fetched', 20, 'same'],
  ]);
});
