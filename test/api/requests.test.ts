/**
 * What each request of requests.txt is answered, and what it asks of the agent, one after the other in one state. A case
 * is METHOD, address and body, after the name of a socket other than control.sock, and after a code and `!` while the state fails with
 * that. `<1..9>` are nine numbers as text, and `<99>` so many blanks that the body has 99 bytes. `--update=true` writes the
 * lines below. Pauses end at once, and move the clock.
 */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import PQueue from 'p-queue';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { EventFeed } from '../../src/api/events.ts';
import { gateOf, routesOf } from '../../src/api/routes.ts';
import type { ApiParts } from '../../src/api/work.ts';
import { SharedState } from '../../src/daemon/state.ts';
import { type ErrorCode, JobtailError } from '../../src/errors.ts';
import { appOf } from '../../src/http/app.ts';
import { serveHttp } from '../../src/http/server.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import type { Store } from '../../src/store/store.ts';
import { ownState } from '../cli/own-state.ts';
import type { Sent } from '../support/api-place.ts';
import { differences, errorDifferences } from '../support/api-schema.ts';
import { expectCases } from '../support/errors.ts';
import { jobOf, tasksOf } from '../support/model-remote.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const seen = vi.hoisted(() => ({
  ms: 0,
  pauses: 0,
  asked: [] as string[],
  /** What the agent answers; it never does while that is null. */
  answers: null as Readonly<Record<string, object | undefined>> | null,
}));
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<object>()),
  setTimeout: async (ms: number, _: unknown, { signal }: { signal?: AbortSignal } = {}) => {
    await new Promise(setImmediate);
    signal?.throwIfAborted();
    seen.ms += ms;
    seen.pauses += 1;
  },
}));
vi.mock(import('../../src/cli/ask-agent.ts'), async (original) => ({
  ...(await original()),
  askAgent: async (config, { kind, jobId, prepare }, signal) => {
    prepare?.(new SharedState(config).store);
    seen.asked.push(`${kind} ${jobId}`);
    if (seen.answers !== null) return (jobId === '502' ? undefined : seen.answers[kind]) as never;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  },
}));

/**
 * The sockets of an agent that follows job 501, has ended 502, is to follow 503, has settled 508, whose mirror was removed,
 * and stops when it is asked about 502.
 */
async function served() {
  const { config, store, directory } = await ownState({ watch: [{ job: 503, tasks: [9001] }] });
  const state = new SharedState(config);
  onTestFinished(() => state.close());
  const live = path.join(config.mirror.directory, '501', 'live', '9001');
  fs.mkdirSync(live, { recursive: true });
  for (const file of ['stdout', 'log']) fs.writeFileSync(path.join(live, `${file}.log`), '');
  const order = { results: true, settleAfterMs: null, source: 'command' } as const;
  store.transaction(() => {
    store.jobs.watch({ ...order, jobId: '501' as JobId, tasks: ['9001' as TaskId], files: LIVE_FILE_NAMES }, 1);
    store.jobs.watch({ ...order, jobId: '502' as JobId, tasks: [], files: [] }, 1);
    store.jobs.setState('502' as JobId, 'ended');
    store.jobs.forget('507' as JobId, 1);
    store.jobs.watch({ ...order, jobId: '508' as JobId, tasks: ['9008' as TaskId], files: ['stdout'] }, 1);
    for (const row of store.liveFiles.ofJob('508' as JobId)) store.liveFiles.save({ ...row, position: 5, verified: 5 });
    store.jobs.setState('508' as JobId, 'settled');
  });
  let thrown: JobtailError | undefined;
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const shared = {
    get store(): Store {
      if (thrown !== undefined) throw thrown;
      return state.store;
    },
  } as SharedState;
  const surroundings: ApiParts['surroundings'] = async () => ({ disks: [], view: null });
  const feed = { reader: () => () => ['news'] } as unknown as EventFeed;
  const parts = { state: shared, feed, surroundings, onFailure };
  const at = (socket: string) => path.join(directory, socket);
  const gates = { read: 'read', control: 'control', 'without-results': 'control' } as const;
  for (const [name, gate] of Object.entries(gates)) {
    const results = { ...config.results, enabled: name !== 'without-results' };
    const routes = routesOf({ ...parts, config: { ...config, results } });
    const server = await serveHttp({ path: at(name) }, (connections) =>
      appOf({ routes, gates: [gateOf(gate, connections)], hint: 'see the page', onFailure }),
    );
    onTestFinished(() => server.close());
  }
  const send = (method: string, where: string, { socket = 'control', ...more }: Sent & { socket?: string } = {}) => {
    const request = http.request({ socketPath: at(socket), method, path: where, agent: false, ...more });
    const response = once(
      request.on('error', () => {}),
      'response',
    ) as Promise<[http.IncomingMessage]>;
    response.catch(() => {});
    return { request, response };
  };
  const fails = (error?: JobtailError) => {
    thrown = error;
  };
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(performance, 'now').mockImplementation(() => seen.ms);
  return { config, store, state, directory, send, failures, fails };
}

const soon = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 20 });

/** What the body of a case stands for. */
const bodyOf = (written: string) =>
  written
    .replace(/<1\.\.(\d+)>/, (_, count) =>
      JSON.stringify(Array.from({ length: Number(count) }, (__, id) => `${id + 1}`)),
    )
    .replace(/<(\d+)>/, (mark, bytes) => ' '.repeat(Number(bytes) - written.length + mark.length));

it('each request is answered, and asks the agent, as is written there', async () => {
  const { config, store, state, directory, send, failures, fails } = await served();
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const ordered = vi.spyOn(state.store.jobs, 'watch');
  const results = { listed: 0, fetched: 0, changed: 0, failed: 0, refused: 0, leftOut: 0, bytes: 0, tookMs: 1 };
  const summary = { appended: 5, liveFiles: 1, verified: 1, openEnds: [], results, isListingEmpty: false };
  const [proof, cluster] = [
    { outcome: 'equal', bytes: 5 },
    { files: 2, links: 1 },
  ];
  seen.answers = {
    ...{
      sync: { summary },
      unwatch: { summary },
      report: { jobs: [jobOf('501', 'Running', { tasks: tasksOf('9001') })] },
    },
    ...{ verify: { files: [], cluster: null }, 'verify-complete': { files: [{ name: '/a', proof }], cluster } },
  };
  const wake = path.join(config.state.directory, 'wake');
  await expectCases(path.join(import.meta.dirname, 'requests.txt'), async (written) => {
    const [, code, socket = 'control', method = '', where = '', body = ''] =
      /^(?:(\S+)! )?(?:([a-z-]+) )?([A-Z]+) (\S+) ?(.*)$/.exec(written) ?? [];
    fails(code === undefined ? undefined : new JobtailError(code as ErrorCode, 'the reason', { hint: 'what to do' }));
    fs.rmSync(wake, { force: true });
    Object.assign(seen, { ms: 0, pauses: 0, asked: [] });
    ordered.mockClear();
    const { request, response } = send(method, where, { socket });
    request.end(bodyOf(body));
    const [{ statusCode, headers }] = await response;
    const [answer] = await response;
    if (headers['content-type'] !== 'application/json') {
      const [line] = await once(answer, 'data');
      request.destroy();
      return [`${statusCode} ${headers['content-type']} ${line}`.trimEnd()];
    }
    const json = JSON.parse(await text(answer)) as Record<string, object>;
    const route = `${method} ${where.replace(/\?.*/, '').replace(/\d{2,}/, ':job')}`;
    expect(statusCode === 200 ? differences(route, json) : errorDifferences(json), written).toEqual([]);
    const short = {
      ...('paths' in json && { components: undefined, paths: Object.keys(json['paths'] ?? {}) }),
      ...('agent' in json && { jobs: (json['jobs'] as { jobId: string }[]).map(({ jobId }) => jobId) }),
    };
    const shown = JSON.stringify(json['error'] ?? { ...json, ...short });
    const others = store.jobs.all().map(({ jobId, state: of }) => `${jobId} ${of}`);
    return [
      `${statusCode} ${shown.replaceAll(directory, 'DIR').replace(`"pid":${process.pid}`, '"pid":PID')}`,
      ...ordered.mock.calls.map(([of]) => `orders ${JSON.stringify(of)}`),
      ...seen.asked.map((kind) => `asks ${kind}`),
      ...(seen.pauses > 0 ? [`after ${seen.ms / 1_000} s, in ${seen.pauses} pauses`] : []),
      ...(fs.existsSync(wake) ? [`wakes the agent: ${others.join(', ')}`] : []),
      ...failures.splice(0).map((failure) => `reports ${failure}`),
    ];
  });
});

it('four requests of a kind are asked of the agent at a time, and a client that goes away gives its place to the next', async () => {
  const { store, send } = await served();
  Object.assign(seen, { asked: [], answers: null, ms: 0 });
  const kinds = [
    ['GET', '/v1/jobs/501/verification'],
    ['GET', '/v1/reported-jobs'],
    ['POST', '/v1/jobs/501/sync'],
    ['POST', '/v1/jobs', '{"jobId": "504"}'],
  ] as const;
  const placed = vi.spyOn(PQueue.prototype, 'add');
  const twoOfEach = () => kinds.map(([method, where, body]) => [1, 2].map(() => send(method, where).request.end(body)));
  const clients = [twoOfEach(), twoOfEach()];
  await soon(() => expect(seen.asked).toHaveLength(16));
  const waiting = twoOfEach();
  await soon(() => expect(placed.mock.calls).toHaveLength(24));
  for (const [first] of waiting) first?.destroy();
  await soon(() => expect(placed.mock.settledResults.filter(({ type }) => type === 'rejected')).toHaveLength(4));
  for (const [first] of clients[0] ?? []) first?.destroy();
  await soon(() => expect(seen.asked).toHaveLength(20));
  for (const client of [...clients, waiting].flat(2)) client.destroy();
  const last = send('DELETE', '/v1/jobs/501').request.end();
  await soon(() => expect(seen.asked.slice(20)).toEqual(['unwatch 501']));
  last.destroy();

  const waits = [0, 1].map(() => send('GET', '/v1/jobs/501/wait?seconds=3600'));
  for (const { request } of waits) request.end();
  await soon(() => expect(seen.ms).toBeGreaterThan(0));
  waits[0]?.request.destroy();
  store.jobs.unwatch('501' as JobId, 'ended');
  const [answer] = (await waits[1]?.response) ?? [];
  if (answer === undefined) expect.unreachable();
  expect(JSON.parse(await text(answer))).toMatchObject({ timedOut: false, jobs: [{ jobId: '501' }] });
});

it('a body without an end is refused when a MiB of it came, and a client that goes away within it is no defect', async () => {
  const { send, failures } = await served();
  const endless = send('POST', '/v1/jobs');
  endless.request.write(Buffer.alloc(1024 * 1024 + 1, ' '));
  expect((await endless.response)[0].statusCode).toBe(400);
  endless.request.destroy();
  const { request } = send('POST', '/v1/jobs', { headers: { expect: '100-continue', 'content-length': '100' } });
  request.flushHeaders();
  await once(request, 'continue');
  request.destroy();
  // The end of the first connection is seen before these.
  for (let times = 0; times < 3; times++) {
    const next = send('GET', '/v1/jobs');
    next.request.end();
    expect((await next.response)[0].statusCode).toBe(200);
  }
  expect(failures).toEqual([]);
});
