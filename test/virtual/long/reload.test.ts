/**
 * Each key of the configuration that a reload applies, in a running agent: what it does goes by the new value. Runs by
 * chance reload any of them at any moment.
 */
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

type Change = Pick<Applied, 'key' | 'before' | 'after'>;
const endsResults = (change: Change): Applied => ({ ...change, measure: hasResult, from: [1, 1], to: [0, 0] });
const followsAnother = (change: Change): Applied => ({ ...change, measure: followed, from: [1, 1], to: [2, 2] });

const APPLIED: readonly Applied[] = [
  {
    key: 'service.concurrency',
    after: { concurrency: 1 },
    async measure(world) {
      for (let left = 4; left > 0; left -= 1) addResult(world, 3_000);
      let most = 0;
      await during(world, 5 * MINUTE_MS, () => {
        most = Math.max(most, 1 + (world.agent.line?.running ?? 0));
      });
      return most;
    },
    from: [2, 4],
    to: [1, 1],
  },
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
    key: 'service.timeoutMs',
    after: { timeoutSeconds: 10 },
    async measure(world) {
      const { service, agent, time } = world;
      service.faults.push({ code: 'silent', operations: [POLL], share: 1, until: Number.POSITIVE_INFINITY });
      const errorOf = () => agent.store.jobs.get(JOB)?.error;
      let calledAt: number | undefined;
      service.onCall = ({ operation }) => {
        if (operation === POLL) calledAt ??= time.passedMs;
      };
      while (errorOf() == null) await world.pass(1_000);
      const tookMs = time.passedMs - (calledAt ?? 0);
      service.faults = [];
      while (errorOf() != null) await world.pass(1_000);
      return tookMs / 1_000;
    },
    from: [60, 63],
    to: [10, 13],
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
    key: 'mirror.keepGenerations',
    before: { keepGenerations: 1 },
    after: { keepGenerations: 3 },
    async measure(world) {
      const file = world.service.job(JOB).tasks[0]?.files.stdout;
      for (let left = 4; left > 0; left -= 1) {
        file?.rewrite(20);
        await world.pass(5 * MINUTE_MS);
      }
      const names = fs.readdirSync(path.join(world.mirrors, JOB, 'live', '5010'));
      return names.filter((name) => /^stdout\.log\.[0-9]+$/.test(name)).length;
    },
    from: [1, 1],
    to: [3, 3],
  },
  endsResults({ key: 'mirror.minFreeBytes', after: { minFreeBytes: Number.MAX_SAFE_INTEGER } }),
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
  {
    key: 'poll.maxIntervalMs',
    before: { maxIntervalSeconds: 600 },
    after: { maxIntervalSeconds: 60 },
    async measure(world) {
      await world.pass(2 * HOUR_MS);
      return during(world, HOUR_MS, () => {}, POLL);
    },
    from: [5, 9],
    to: [55, 75],
  },
  {
    key: 'poll.overlapBytes',
    after: { overlapBytes: 4096 },
    async measure(world) {
      world.service.job(JOB).tasks[0]?.files.stdout.append(300);
      await world.pass(10 * MINUTE_MS);
      const committed = () => world.agent.store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout')?.position;
      let overlap = 0;
      await during(
        world,
        10 * MINUTE_MS,
        ({ files }) => {
          const offset = files[files.indexOf('5010/stdout') + 1]?.replace('from ', '');
          overlap = (committed() ?? 0) - Number(offset);
        },
        POLL,
      );
      return overlap;
    },
    from: [256, 1_300],
    to: [4_096, 5_200],
  },
  endsResults({ key: 'results.enabled', before: { results: true, watch: [JOB] }, after: { results: false } }),
  {
    key: 'results.intervalMs',
    before: { resultsIntervalSeconds: 900 },
    after: { resultsIntervalSeconds: 60 },
    measure: (world) => during(world, 2 * HOUR_MS, () => {}, 'ListChangedFilesForJob'),
    from: [7, 11],
    to: [115, 140],
  },
  endsResults({ key: 'results.include', after: { include: ['*.txt'] } }),
  endsResults({ key: 'results.exclude', after: { exclude: ['*.dat'] } }),
  endsResults({ key: 'results.maxFileBytes', after: { maxFileBytes: 1_000 } }),
  {
    key: 'results.bandwidthLimit',
    after: { bandwidthLimit: 20_000 },
    async measure(world) {
      const { time } = world;
      const name = addResult(world, 200_000);
      let calledAt: number | undefined;
      world.service.onCall = ({ files }) => {
        if (files.includes(name)) calledAt ??= time.passedMs;
      };
      while (world.agent.store.results.get(JOB, name)?.state !== 'synced') await world.pass(250);
      return (time.passedMs - (calledAt ?? 0)) / 1_000;
    },
    from: [0, 3],
    to: [9, 13],
  },
  followsAnother({ key: 'watch', after: { watch: [OTHER] } }),
  followsAnother({ key: 'watchMine', after: { mine: 1 } }),
  {
    key: 'notify',
    after: { notify: true },
    async measure(world) {
      const job = world.service.job(JOB);
      const before = world.receiver.taken.size;
      job.end('Failed', world.time.wallMs);
      await world.pass(MINUTE_MS);
      job.start(world.time.wallMs);
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
  {
    key: 'stallAfterMs',
    after: { stallAfterMinutes: 10 },
    async measure(world) {
      await world.pass(30 * MINUTE_MS);
      return Number(world.agent.store.jobs.get(JOB)?.stalledAt != null);
    },
    from: [0, 0],
    to: [1, 1],
  },
];

/** What a reload applies, or refuses, to something that the simulation does not have. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'the HTTP client and the protocol (test/e2e/reload.test.ts, test/e2e/long/watched-files.test.ts)': [
    ...['protocol', 'fileTransferUrl', 'namespace', 'jobsUrl', 'soapVersion', 'baseUrl', 'compression', 'proxy'],
    ...['proxyUserFile', 'tls.caFile', 'tls.certFile', 'tls.keyFile'],
  ].map((key) => `service.${key}`),
  // By how `concurrency` is set.
  'the same key': ['service.maxConcurrency'],
  'the sign-in (test/remote/signin)': [
    ...['method', 'path', 'operation', 'sessionCodeField', 'sessionFaultPattern'],
    ...['secret.kind', 'secret.path'],
  ].map((key) => `auth.${key}`),
  'a restart': ['mirror.directory', 'state.directory', 'fleet'],
  'direct transfers': [
    ...['transfer', 'directAboveBytes', 'shareRoots', 'ssh.hostKeys', 'ssh.knownHostsFile', 'ssh.pinnedKeys'],
  ].map((key) => `results.${key}`),
  'files that the simulated disk does not remove (test/cli/forget.test.ts)': ['retention.deleteFiles'],
  'a command, which reads it anew': ['errors.patterns'],
  'the log and the ports of the process': ['logging.level', 'metrics.listen', 'view', 'file'],
};

test.each(APPLIED)('$key is in force after a reload', ({ before, after, measure, from, to }) =>
  withJob(
    async (world) => {
      world.service.submit(OTHER).start(world.time.wallMs);
      await world.pass(10 * MINUTE_MS);
      isWithin(await measure(world), from, 'before');
      await reload(world, after, false);
      isWithin(await measure(world), to, 'after');
    },
    { ...SETTINGS, ...before },
  ),
);

test('each key of the configuration is reloaded here, or named with where it is', () =>
  withJob(async (world) => {
    const keys = leavesOf(world.config);
    expect([...APPLIED.map(({ key }) => key), ...Object.values(OTHERS).flat()].sort()).toEqual(keys.sort());
  }, SETTINGS));

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
  const { results } = service.job(JOB);
  const name = `/out/new-${results.size}.dat`;
  results.set(name, { contents: [Buffer.alloc(bytes, name)], writtenAt: time.wallMs });
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
  world.service.job(jobId).end('Finished', world.time.wallMs);
  await world.pass(26 * HOUR_MS);
  return jobId;
}

async function followed(world: World): Promise<number> {
  await world.pass(5 * MINUTE_MS);
  return world.agent.engine.agent.jobs;
}

/** The names of all values in it; a list is one value. */
function leavesOf(of: object): string[] {
  return Object.entries(of).flatMap(([key, value]: [string, unknown]) => {
    const isSection = typeof value === 'object' && value !== null && !Array.isArray(value);
    const inner = isSection ? leavesOf(value) : [];
    return inner.length === 0 ? [key] : inner.map((name) => `${key}.${name}`);
  });
}
