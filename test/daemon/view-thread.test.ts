/** The thread of the view: it serves by the settings in force, and whatever ends it, it is said and begun again. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { ViewThread, viewSettingsOf } from '../../src/daemon/view-thread.ts';
import { logLine } from '../../src/printable.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';

async function setUp() {
  const port = await freePort();
  const { config } = await ownState({ view: { listen: `127.0.0.1:${port}` } });
  const settings = viewSettingsOf(config, { program: '1', agentPid: process.pid });
  const said: string[] = [];
  const states: (string | undefined)[] = [];
  const say = (level: string) => (fields: object, phrase: string) =>
    void said.push(`${level} ${logLine({ ...fields }, phrase)}`.replaceAll(`${port}`, 'PORT'));
  const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const threads: Worker[] = [];
  const kinds: string[] = [];
  const onWorker = (thread: Worker) => {
    threads.push(thread);
    thread.on('message', ({ kind }: { kind: string }) => kinds.push(kind));
  };
  process.on('worker', onWorker);
  const view = new ViewThread({ log, onState: (lacking) => states.push(lacking) });
  onTestFinished(async () => {
    process.off('worker', onWorker);
    await view.close();
  });
  const count = (text: string) => said.filter((each) => each.includes(text)).length;
  return { settings, port, view, said, states, threads, kinds, count };
}

it('the thread of the view serves, goes on by the same settings, begins anew by others, and ends', async () => {
  const { settings, port, view, threads, count } = await setUp();
  await view.use({ settings, fleet: null });
  await until('the view', () => count('view listening') === 1);
  const address = `http://127.0.0.1:${port}/`;
  expect((await fetch(`${address}api/find`)).status).toBe(401);
  await view.use({ settings: { ...settings }, fleet: null });
  expect(threads).toHaveLength(1);
  const otherPort = await freePort();
  const other = { ...settings, listen: { host: '127.0.0.1', port: otherPort } };
  await view.use({ settings: other, fleet: null });
  await until('the other one', () => count('view listening') === 2);
  await expect(fetch(address)).rejects.toThrow();
  await view.use(null);
  await expect(fetch(`http://127.0.0.1:${otherPort}/`)).rejects.toThrow();
  // None of them is begun again.
  expect(count('cannot listen for the view')).toBe(0);
});

it('an address of the view that is in use is reported once, and served when it is free', async () => {
  const { settings, port, view, said, states, count } = await setUp();
  const taken = net.createServer().listen(port, '127.0.0.1');
  await once(taken, 'listening');
  await view.use({ settings, fleet: null });
  await until('another try', () => count('cannot listen for the view') >= 2);
  const hint = 'the agent goes on, and begins it again; if its address is in use, set view.listen to a free one';
  const failed = `cannot listen for the view scope="the view" code=config address=http://127.0.0.1:PORT/: address already in use: 127.0.0.1:PORT (listen EADDRINUSE) (${hint})`;
  expect([...new Set(said)]).toEqual([`error ${failed}`, `debug ${failed}`]);
  taken.close();
  await until('the view', () => count('view listening') === 1);
  expect(said.at(-1)).toMatch(/^info view listening address=http:.*PORT.*agent view prints its link/);
  const lacking = `there is no view: address already in use: 127.0.0.1:${port} (listen EADDRINUSE)`;
  expect([...new Set(states)]).toEqual([lacking, undefined]);
});

it('the thread of the view asks the agent for nothing, however much is asked of the view', async () => {
  const { settings, port, view, kinds, count } = await setUp();
  await view.use({ settings, fleet: null });
  await until('the view', () => count('view listening') === 1);
  const token = fs.readFileSync(path.join(settings.stateDirectory, 'view-token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  for (let each = 0; each < 100; each++) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/results?job=501`, { headers });
    await answer.text();
  }
  expect(kinds.filter((kind) => kind !== 'pulse')).toEqual(['serving']);
});
