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
import { complaintsOf, metricsOf, NOW, scrape, TOTALS } from '../support/service-scrape.ts';

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
    // A clock may have been ahead.
    totals = { ...TOTALS, jobs: { watched: 4 }, grownAt: null, oldestPollAt: NOW + 5_000 };
    const text = await metrics.text();
    expect(text).not.toContain('state="ended"');
    expect(seriesValue(text, 'jobtail_growth_age_seconds'), 'nothing grew yet').toBeUndefined();
    expect(seriesValue(text, 'jobtail_oldest_poll_age_seconds')).toBe('0');
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
  /** Status, type, cache and text of a response; of numbers, that they are some. */
  const get = async ({ port }: Served, path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    const [type, cache] = ['content-type', 'cache-control'].map((name) => response.headers.get(name));
    const text = (await response.text()).replace(/^# HELP[\s\S]*/, 'numbers').replaceAll(/\s+/g, ' ');
    return [response.status, type?.replace(/; charset=utf-8$/i, ''), cache, text.trim()].join('; ');
  };
  const refusal = (status: number, error: object) => {
    const text = JSON.stringify({ version: 2, error }, null, 1).replaceAll(/\s+/g, ' ');
    return `${status}; application/json; no-store; ${text}`;
  };

  it('answers what it has, anew for each request but once for those at the same time, and else why not', async () => {
    const ready = await served();
    const numbers = `200; ${Registry.PROMETHEUS_CONTENT_TYPE.replace('; charset=utf-8', '')}; no-store; numbers`;
    expect([await get(ready, '/metrics'), await get(ready, '/metrics?x=1')]).toEqual([numbers, numbers]);
    expect(await get(ready, '/metrics', 'HEAD')).toBe(numbers.replace('numbers', ''));
    for (const path of ['/healthz', '/readyz']) expect(await get(ready, path)).toBe('200; text/plain; no-store; ok');
    const hint = 'there is /metrics, /healthz and /readyz';
    const nothing = refusal(404, { code: 'usage', message: 'there is nothing at this address', hint });
    expect([await get(ready, '/'), await get(ready, '/metrics', 'POST')]).toEqual([nothing, nothing]);
    let asked = 0;
    const failing = await served({
      metrics: async () => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        throw new JobtailError('store', `the state is locked, ${++asked}`);
      },
      unhealthy: () => 'it stands',
      unready: () => 'the service does not answer',
    });
    const locked = (times: number) =>
      refusal(503, { code: 'store', message: `the state is locked, ${times}`, hint: null });
    const both = await Promise.all([get(failing, '/metrics'), get(failing, '/metrics')]);
    expect([...both, await get(failing, '/metrics')]).toEqual([locked(1), locked(1), locked(2)]);
    expect(await get(failing, '/healthz')).toBe('503; text/plain; no-store; it stands');
    expect(await get(failing, '/readyz')).toBe('503; text/plain; no-store; the service does not answer');
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
      expect(await get(server, '/healthz')).toMatch(/^200.* ok$/);
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
