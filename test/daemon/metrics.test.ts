/** The numbers, and the server that hands them out. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { StoreTotals } from '../../src/daemon/metrics.ts';
import { type MetricsServer, serveMetrics } from '../../src/daemon/metrics-port.ts';
import { JobtailError } from '../../src/errors.ts';
import { until } from '../support/e2e-until.ts';
import { needs } from '../support/needs.ts';
import { complaintsOf, metricsOf, scrape, TOTALS } from '../support/service-scrape.ts';

const SERVICE_TEXT = new URL('../../docs/monitoring.md', import.meta.url);

/** The value of a series as it stands in a scrape. */
const seriesValue = (text: string, series: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1);

describe('the metrics', () => {
  it('count the time of the processor from the start of the process, not from the first request', async () => {
    const { user, system } = process.cpuUsage();
    const used = Number(seriesValue(await scrape(), 'process_cpu_seconds_total'));
    expect(used).toBeGreaterThanOrEqual((user + system) / 1e6);
  });

  it('count what happened and add up the store', async () => {
    const more = { stalledJobs: 6, failingFiles: 5, deliveriesWaiting: 14, deliveriesGivenUp: 13 };
    const text = await scrape({ ...TOTALS, ...more });
    const series = text.split('\n').filter((line) => line.startsWith('jobtail_'));
    const printed = series.map((line) => `${line.replace(process.version, 'NODE')}\n`).join('');
    await expect(printed).toMatchFileSnapshot('metrics.txt');
    expect(text).toContain('nodejs_eventloop_lag_p99_seconds');
    expect(text).toContain('process_resident_memory_bytes');
    // promtool refuses another type under such a name.
    const types = [...text.matchAll(/^# TYPE (\S+_total) (\S+)$/gm)];
    expect(types.filter(([, , type]) => type !== 'counter').map(([, name]) => name)).toEqual([]);
    expect(types.length).toBeGreaterThan(3);
  });

  it('of what may happen once begin at 0: a first one is seen as an increase', async () => {
    const text = await metricsOf().text();
    const series = [...text.matchAll(/^jobtail_(\S+_total\S*) 0$/gm)].map(([, name]) => name);
    expect(series.sort()).toEqual([
      'mirrored_bytes_total',
      ...['mirror-damaged', 'rewritten', 'truncated'].map((kind) => `mismatches_total{kind="${kind}"}`),
      ...['refused', 'taken'].map((outcome) => `reloads_total{outcome="${outcome}"}`),
      ...['results_fetched_bytes_total', 'server_pauses_total', 'server_work_seconds_total'],
      'sign_ins_total{outcome="ok"}',
    ]);
  });

  it('forget a state that no job is in any more', async () => {
    let totals: StoreTotals = TOTALS;
    let reads = 0;
    const metrics = metricsOf(() => {
      reads += 1;
      return totals;
    });
    expect(await metrics.text()).toContain('jobtail_jobs{state="ended"} 1');
    totals = { ...TOTALS, jobs: { watched: 4 }, grownAt: null };
    const text = await metrics.text();
    expect(text).not.toContain('state="ended"');
    expect(seriesValue(text, 'jobtail_growth_age_seconds'), 'nothing grew yet').toBeUndefined();
    expect(reads, 'the store is added up once for all of an answer').toBe(2);
  });

  it('are what promtool accepts', needs('promtool'), async () => {
    expect(complaintsOf(await scrape())).toEqual([]);
  });

  it('are all explained in docs/monitoring.md', async () => {
    const names = [...(await scrape()).matchAll(/^# TYPE (jobtail_\w+)/gm)].map(([, name]) => name);
    const text = fs.readFileSync(SERVICE_TEXT, 'utf8');
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !text.includes(`\`${name}\``) && !text.includes(`\`${name}{`))).toEqual([]);
  });
});

describe('the server', () => {
  async function start(
    verdicts: { unhealthy?: string; unready?: string; requestMs?: number } = {},
  ): Promise<MetricsServer> {
    const server = await serveMetrics({
      host: '127.0.0.1',
      port: 0,
      metrics: () => metricsOf().text(),
      unhealthy: () => verdicts.unhealthy,
      unready: () => verdicts.unready,
      ...(verdicts.requestMs === undefined ? {} : { requestMs: verdicts.requestMs }),
    });
    onTestFinished(() => server.close());
    return server;
  }
  /** A connection that sends `text`, and then nothing more and reads nothing; until the test is over. */
  const holdConnection = async ({ port }: MetricsServer, text: string) => {
    const socket = net.connect({ port, host: '127.0.0.1' }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.write(text);
    if (text !== HELD['reads no answer']) socket.resume();
    return socket;
  };
  const get = async ({ port }: MetricsServer, path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
  };

  it('answers what it has, and nothing else', async () => {
    const server = await start();
    expect(await get(server, '/metrics')).toMatchObject({ status: 200, text: expect.stringContaining('jobtail_jobs') });
    expect(await get(server, '/metrics?x=1')).toMatchObject({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE });
    expect(await get(server, '/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
    expect(await get(server, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await get(server, '/readyz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await get(server, '/')).toMatchObject({ status: 404 });
    expect(await get(server, '/metrics', 'POST')).toMatchObject({ status: 405 });
  });

  it('adds up anew for each response', async () => {
    let sums = 0;
    const server = await serveMetrics({
      ...{ host: '127.0.0.1', port: 0, unhealthy: () => undefined, unready: () => undefined },
      metrics: async () => `${++sums}`,
    });
    onTestFinished(() => server.close());
    for (const text of ['1', '2']) expect(await get(server, '/metrics')).toMatchObject({ text });
  });

  it('ends the connection longest without a request, where there are too many', async () => {
    const server = await start();
    const hold = () => holdConnection(server, '');
    for (let round = 0; round < 40; round++) {
      const left = await hold();
      left.destroy();
    }
    const held = await Promise.all(Array.from({ length: 32 }, hold));
    const [first, second] = held;
    first?.write('GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n');
    await until('its response', () => (first?.bytesRead ?? 0) > 0);
    await hold();
    await until('the end of one', () => held.some((socket) => socket.destroyed));
    expect(held.map((socket) => socket.destroyed)).toEqual(held.map((socket) => socket === second));
  });

  it('says why there are no numbers', async () => {
    const server = await serveMetrics({
      host: '127.0.0.1',
      port: 0,
      metrics: async () => Promise.reject(new JobtailError('store', '/state/agent.db is locked by another process')),
      unhealthy: () => undefined,
      unready: () => undefined,
    });
    onTestFinished(() => server.close());
    expect(await get(server, '/metrics')).toMatchObject({
      status: 500,
      text: '/state/agent.db is locked by another process\n',
    });
  });

  it('says why the agent is not healthy or not ready', async () => {
    const server = await start({ unhealthy: 'it stands', unready: 'the service does not answer' });
    expect(await get(server, '/healthz')).toMatchObject({ status: 503, text: 'it stands\n' });
    expect(await get(server, '/readyz')).toMatchObject({ status: 503, text: 'the service does not answer\n' });
  });

  const HELD = {
    'says nothing': '',
    'sends half a request': 'GET /metrics HTTP/1.1\r\nHost: here\r\n',
    'announces a body that never comes': 'GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n',
    'reads no answer': 'GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(100),
  };

  it.for(Object.entries(HELD))('has a place for a health check although each other client %s', async ([, sent]) => {
    const server = await start();
    for (let round = 0; round < 3; round++) {
      const held = await Promise.all(Array.from({ length: 100 }, () => holdConnection(server, sent)));
      const open = () => held.filter((socket) => !socket.destroyed);
      // Who gets a response and does not read it hears of no end.
      if (!sent.includes('\r\n\r\n')) await until('at most 32 connections', async () => open().length <= 32);
      expect(await get(server, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
      expect(await get(server, '/metrics')).toMatchObject({ status: 200 });
    }
  });

  it.for(Object.entries(HELD))('waits not for ever for one that %s', async ([, sent]) => {
    const server = await start({ requestMs: 200 });
    const sockets = await Promise.all(Array.from({ length: 8 }, () => holdConnection(server, sent)));
    const areEnded = () => {
      // Who reads nothing hears of the end when it writes.
      if (sent === HELD['reads no answer']) for (const socket of sockets) socket.write('G');
      expect(sockets.every((socket) => socket.destroyed)).toBe(true);
    };
    await vi.waitFor(areEnded, { timeout: 20_000 });
  });

  it('ends at once, also while a client holds a connection, and frees the port', async () => {
    const first = await start();
    await get(first, '/healthz');
    await first.close();
    const again = await serveMetrics({
      host: '127.0.0.1',
      port: first.port,
      metrics: async () => '',
      unhealthy: () => undefined,
      unready: () => undefined,
    });
    await expect(
      serveMetrics({
        ...again,
        host: '127.0.0.1',
        metrics: expect.unreachable,
        unhealthy: () => '',
        unready: () => '',
      }),
    ).rejects.toThrow('EADDRINUSE');
    await again.close();
  });
});
