/** Keys of each kind show that the running agent goes by their new values; runs by chance reload any key. */
import fs, { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { resultsDirectory } from '../../../src/agent/results/results.ts';
import type { JobId } from '../../../src/job.ts';
import type { Operation } from '../../../src/operations.ts';
import type { Settings } from '../agent.ts';
import { ended, reload } from '../commands.ts';
import { JOB, MINUTE_MS, withJob } from '../one-job.ts';
import type { Call } from '../service.ts';
import type { World } from '../world.ts';

const HOUR_MS = 60 * MINUTE_MS;
const OTHER = '502' as JobId;
const POLL = 'DownloadPartsOfJobFilesFromCluster';

const SETTINGS: Settings = {
  ...{ minIntervalSeconds: 2, maxIntervalSeconds: 60, resultsIntervalSeconds: 60, overlapBytes: 256 },
  ...{ concurrency: 4, requestsPerMinute: null, timeoutSeconds: 60, username: 'alice' },
  ...{ keepGenerations: 5, mine: null, watch: [], stallAfterMinutes: null, notify: false, level: 'info' },
  ...{ results: true, include: ['**'], exclude: [], maxFileBytes: null, minFreeBytes: 0, bandwidthLimit: null },
};

type Range = readonly [min: number, max: number];

interface Applied {
  /** A key of `Config`. */
  readonly key: string;
  readonly before?: Partial<Settings>;
  readonly after: Partial<Settings>;
  /** What shows the value, and how much it is before the reload and after it. */
  readonly measure: (world: World) => Promise<number>;
  readonly from: Range;
  readonly to: Range;
}

const APPLIED: readonly Applied[] = [
  {
    key: 'service.requestsPerMinute',
    before: { requestsPerMinute: null, minIntervalSeconds: 1 },
    after: { requestsPerMinute: 20 },
    async measure(world) {
      grow(world, 400, 2 * MINUTE_MS);
      await world.pass(MINUTE_MS);
      return during(world, MINUTE_MS);
    },
    from: [40, 200],
    to: [10, 21],
  },
  {
    key: 'auth.username',
    after: { username: 'bob' },
    async measure(world) {
      world.service.forgetSessions();
      await world.pass(5 * MINUTE_MS);
      return Number(world.service.signedInWith.includes('bob'));
    },
    from: [0, 0],
    to: [1, 1],
  },
  {
    key: 'poll.minIntervalMs',
    before: { minIntervalSeconds: 5 },
    after: { minIntervalSeconds: 1 },
    async measure(world) {
      grow(world, 400, 2 * MINUTE_MS);
      await world.pass(MINUTE_MS);
      return during(world, MINUTE_MS, () => {}, POLL);
    },
    from: [10, 15],
    to: [45, 75],
  },
  { key: 'watch', after: { watch: [OTHER] }, measure: followed, from: [1, 1], to: [2, 2] },
  {
    key: 'notify',
    after: { notify: true },
    async measure(world) {
      const job = world.service.job(JOB);
      const before = world.receiver.taken.size;
      job.to('Failed', world.time.wallMs);
      await world.pass(MINUTE_MS);
      job.to('Running', world.time.wallMs);
      await world.pass(10 * MINUTE_MS);
      return world.receiver.taken.size - before;
    },
    from: [0, 0],
    to: [1, 10],
  },
  {
    key: 'retention.settledMs',
    before: { watch: [JOB, OTHER] },
    after: { retention: '{settledDays: 1}' },
    measure: async (world) => Number(world.agent.store.jobs.get(await endedDaysAgo(world)) !== undefined),
    from: [1, 1],
    to: [0, 0],
  },
];

test.each(APPLIED)('$key is in force after a reload', ({ before, after, measure, from, to }) =>
  withJob(
    async (world) => {
      world.service.submit(OTHER).to('Running', world.time.wallMs);
      await world.pass(10 * MINUTE_MS);
      isWithin(await measure(world), from, 'before');
      await reload(world, after, false);
      isWithin(await measure(world), to, 'after');
    },
    { ...SETTINGS, ...before },
  ),
);

test('a job that the configuration no longer names is ended', () =>
  withJob(async (world) => {
    await reload(world, { watch: [JOB] }, false);
    await reload(world, { watch: [] }, false);
    await world.pass(10 * MINUTE_MS);
    expect(world.agent.store.jobs.get(JOB)?.state).toBe('ended');
  }, SETTINGS));

test.each([
  ['a broken file', 'service: {', 'config.yaml:'],
  ['another place of the state', 'state: {directory: /elsewhere}', 'state.directory needs a restart'],
])('%s is refused, and all goes on as before', (_, line, reason) =>
  withJob(async (world) => {
    const file = path.join(world.directory, 'config.yaml');
    const text = readFileSync(file, 'utf8');
    if (line.startsWith('state')) writeFileSync(file, text.replace(/^state: .*$/m, line));
    else appendFileSync(file, line);
    await ended(world, world.agent.reload(false));
    expect(world.agent.refused).toContain(reason);
    expect(await hasResult(world)).toBe(1);
    writeFileSync(file, text);
    await reload(world, { include: ['*.txt'] }, false);
    expect(world.agent.refused).toBeUndefined();
    expect(await hasResult(world)).toBe(0);
  }, SETTINGS),
);

test('a reload that is asked for tries at once what the service let wait', () =>
  withJob(async (world) => {
    const { service } = world;
    const fault = { code: 'unavailable', retryAfterMs: 30 * MINUTE_MS, share: 1 } as const;
    service.faults.push({ ...fault, until: world.time.passedMs + 5 * MINUTE_MS });
    await world.pass(5 * MINUTE_MS);
    expect(await during(world, 10 * MINUTE_MS)).toBe(0);
    await reload(world, {}, true);
    expect(await during(world, MINUTE_MS)).toBeGreaterThan(0);
  }, SETTINGS));

function isWithin(value: number, [min, max]: Range, when: string): void {
  expect(value, when).toBeGreaterThanOrEqual(min);
  expect(value, when).toBeLessThanOrEqual(max);
}

/** Lets time pass; returns how many calls of the operation were made, or of all. */
async function during(world: World, ms: number, onCall: (call: Call) => void = () => {}, only?: Operation) {
  let calls = 0;
  world.service.onCall = (call) => {
    if (only !== undefined && call.operation !== only) return;
    calls += 1;
    onCall(call);
  };
  await world.pass(ms);
  world.service.onCall = () => {};
  return calls;
}

function grow(world: World, everyMs: number, forMs: number): void {
  const file = world.service.job(JOB).tasks[0]?.files.stdout;
  for (let at = 0; at < forMs; at += everyMs) world.later(at, () => file?.append(1));
}

/** A new result; returns its name. */
function addResult({ service, time }: World, bytes: number): string {
  const job = service.job(JOB);
  const name = `/out/new-${job.results.size}.dat`;
  job.result(name, 'file', time.wallMs, Buffer.alloc(bytes, name));
  return name;
}

/** 1 if a new result is fetched in time. */
async function hasResult(world: World): Promise<number> {
  const name = addResult(world, 3_000);
  await world.pass(10 * MINUTE_MS);
  return Number(fs.existsSync(path.join(resultsDirectory(world.mirrors, JOB), name)));
}

/** Ends a job that is followed, and lets days pass. */
async function endedDaysAgo(world: World): Promise<JobId> {
  const { store } = world.agent;
  const jobId = [JOB, OTHER].find((one) => store.jobs.get(one)?.state === 'watched');
  if (jobId === undefined) throw new Error('no job is followed');
  world.service.job(jobId).to('Finished', world.time.wallMs);
  await world.pass(26 * HOUR_MS);
  return jobId;
}

async function followed(world: World): Promise<number> {
  await world.pass(5 * MINUTE_MS);
  return world.agent.engine.agent.jobs;
}
