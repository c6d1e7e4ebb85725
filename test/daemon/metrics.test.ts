/** The numbers, and the server that hands them out. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { StoreTotals } from '../../src/daemon/metrics.ts';
import { serveMetrics } from '../../src/daemon/metrics-routes.ts';
import { JobtailError } from '../../src/errors.ts';
import type { Served } from '../../src/http/server.ts';
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
  const served = async (options: Partial<Parameters<typeof serveMetrics>[1]> = {}, port = 0) => {
    const usual = { metrics: () => metricsOf().text(), unhealthy: () => undefined, unready: () => undefined };
    const server = await serveMetrics({ host: '127.0.0.1', port }, { ...usual, ...options });
    onTestFinished(() => server.close().catch(() => {}));
    return server;
  };
  const get = async ({ port }: Served, path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
  };

  it('answers what it has, and nothing else', async () => {
    const server = await served();
    expect(await get(server, '/metrics')).toMatchObject({ status: 200, text: expect.stringContaining('jobtail_jobs') });
    expect(await get(server, '/metrics?x=1')).toMatchObject({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE });
    expect(await get(server, '/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
    expect(await get(server, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await get(server, '/readyz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await get(server, '/')).toMatchObject({ status: 404, text: expect.stringContaining('there is /metrics') });
    expect(await get(server, '/metrics', 'POST')).toMatchObject({ status: 404 });
  });

  it('adds up anew for each response, but once for those at the same time', async () => {
    let sums = 0;
    const server = await served({
      metrics: async () => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        return `${++sums}`;
      },
    });
    const both = await Promise.all([get(server, '/metrics'), get(server, '/metrics')]);
    expect([...both, await get(server, '/metrics')].map(({ text }) => text)).toEqual(['1', '1', '2']);
  });

  it('reports why there are no numbers, and why the agent is not healthy or not ready', async () => {
    const locked = new JobtailError('store', '/state/agent.db is locked by another process');
    const server = await served({
      metrics: () => Promise.reject(locked),
      unhealthy: () => 'it stands',
      unready: () => 'the service does not answer',
    });
    expect(await get(server, '/metrics')).toMatchObject({ status: 503, text: expect.stringContaining(locked.message) });
    expect(await get(server, '/healthz')).toMatchObject({ status: 503, text: 'it stands\n' });
    expect(await get(server, '/readyz')).toMatchObject({ status: 503, text: 'the service does not answer\n' });
  });

  const HELD = {
    'sends nothing': '',
    'sends half a request': 'GET /metrics HTTP/1.1\r\nHost: here\r\n',
    'announces a body that never comes': 'GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n',
    'reads no response': 'GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n',
  };

  it.for(Object.entries(HELD))(
    'has a place for a health check, and waits not for ever, although each other client %s',
    async ([, sent]) => {
      const server = await served({ requestMs: 1_000, metrics: async () => 'a'.repeat(100_000) });
      const hold = async () => {
        const socket = net.connect({ port: server.port, host: '127.0.0.1' }).on('error', () => {});
        onTestFinished(() => void socket.destroy());
        await once(socket, 'connect');
        socket.write(sent);
        return sent === HELD['reads no response'] ? socket : socket.resume();
      };
      const held = await Promise.all(Array.from({ length: 300 }, hold));
      expect(await get(server, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
      const areEnded = () => {
        // Who reads nothing learns of the end when it writes.
        if (sent === HELD['reads no response']) for (const socket of held) socket.write('G');
        expect(held.every((socket) => socket.destroyed)).toBe(true);
      };
      await vi.waitFor(areEnded, { timeout: 20_000 });
    },
  );

  it('ends at once, also while a client holds a connection, and frees the port', async () => {
    const first = await served();
    await get(first, '/healthz');
    await first.close();
    const again = await served({}, first.port);
    await expect(served({}, again.port)).rejects.toThrow('EADDRINUSE');
  });
});
