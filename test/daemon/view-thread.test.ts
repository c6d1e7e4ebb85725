/** The thread of the view: it serves by the settings in force, and whatever ends it, it is said and begun again. */

import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import type { Log } from '../../src/agent/ports/host.ts';
import { ViewThread } from '../../src/daemon/view-thread.ts';
import { logLine } from '../../src/printable.ts';
import { Store } from '../../src/store/store.ts';
import type { ViewSettings } from '../../src/view/settings.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

interface Said {
  readonly level: 'info' | 'error' | 'debug' | 'warn';
  readonly text: string;
}

async function setUp() {
  const directory = temporaryDirectory();
  const [mirrorDirectory, stateDirectory] = ['mirror', 'state'].map((name) => path.join(directory, name)) as [
    string,
    string,
  ];
  for (const each of [mirrorDirectory, stateDirectory]) fs.mkdirSync(each);
  new Store({ directory: stateDirectory, service: 'http://service', owner: true, now: Date.now }).close();
  const service = {
    address: 'http://service',
    protocol: 'soap' as const,
    hasJobService: false,
    concurrency: 4,
    requestsPerMinute: 600,
  };
  const port = await freePort();
  const settings: ViewSettings = {
    ...{
      mirrorDirectory,
      errorPatterns: null,
      stateDirectory,
      service,
      publicUrl: null,
      tokenFile: null,
      program: '1',
      agentPid: process.pid,
    },
    listen: { host: '127.0.0.1', port },
  };
  const said: Said[] = [];
  const states: (string | undefined)[] = [];
  const say = (level: Said['level']) => (fields: object, phrase: string) =>
    void said.push({ level, text: logLine({ ...fields }, phrase) });
  const log: Log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
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
  const count = (text: string) => said.filter((each) => each.text.includes(text)).length;
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
  expect(said.filter(({ level }) => level === 'error')).toHaveLength(1);
  expect(said[0]?.text).toContain(`address=http://127.0.0.1:${port}/: address already in use: `);
  taken.close();
  await until('the view', () => count('view listening') === 1);
  expect([...new Set(states)]).toEqual([
    expect.stringContaining('there is no view: address already in use: '),
    undefined,
  ]);
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
