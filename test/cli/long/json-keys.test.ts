/** docs/json.md has the keys that each command prints with `--json`, and no others. */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import type { JobId } from '../../../src/job.ts';
import { newEvent } from '../../../src/notify/events.ts';
import { Rule } from '../../../src/notify/rules.ts';
import { saveOutage } from '../../../src/store/outage.ts';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { SILENT } from '../../support/errors.ts';

const page = fs.readFileSync(fileURLToPath(new URL('../../../docs/json.md', import.meta.url)), 'utf8');
const [, ofStatus = '', ofOthers = ''] =
  /## agent status --json\n([\s\S]*?)\nIn a \[fleet\][\s\S]*?(\| command \| keys \|[\s\S]*?)\n\n/.exec(page) ?? [];

/** The names in code of a text; values are in quotes. */
const namesIn = (text: string) => [...text.matchAll(/`([a-z]\w*)`/g)].map(([, name = '']) => name);

function keysOnPage(): Map<string, Set<string>> {
  const rows = [...ofOthers.matchAll(/^\| `([a-z -]+)` \| (.*) \|$/gm)];
  const others = rows.map(([, command = '', cell = '']) => [command, new Set(namesIn(cell))] as const);
  return new Map([['status', new Set(namesIn(ofStatus))], ...others]);
}

/** At every depth. A time of the middleware is a value; what is in an event, or of a module, has another page or no name. */
function keysIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(keysIn);
  if (typeof value !== 'object' || value === null || Object.keys(value).join() === 'text,ms') return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    key,
    ...(key === 'modules' || key === 'event' ? [] : keysIn(inner)),
  ]);
}

it('docs/json.md has each key that a command prints, and no other', async (context) => {
  const printed = new Map<string, Set<string>>();
  const add = (command: string, ...outputs: readonly string[]) => {
    const keys = printed.get(command) ?? new Set();
    for (const key of outputs.flatMap((output) => keysIn(JSON.parse(output)))) keys.add(key);
    printed.set(command, keys);
    // Of each command. A fleet has another machine; a command may follow jobs in the place of an agent.
    keys.delete('version');
    if (command === 'status') keys.add('host').add('command');
    if (command === 'version') keys.add('version');
  };
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits({ transferProtocol: 'NetworkShare' });
  const job = await sandbox.submit({ tasks: [{ name: 'solver' }] });
  const jobId = job.jobId as JobId;
  const task = taskOf(job);
  fs.writeFileSync(task.files.stdout, Buffer.from('ERROR: diverged\ncaf\xe9\n', 'latin1'));
  for (const name of ['a.dat', 'b.dat']) fs.writeFileSync(path.join(task.directory, name), 'data');
  const jobs = path.join(place.directory, 'cluster', 'jobs');
  const listen = { host: '127.0.0.1', port: await freePort() };
  const config = {
    ...sandbox.configuration('rest'),
    mirror: { directory: place.mirror },
    state: { directory: place.state },
    poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
    results: { intervalSeconds: 1, shareRoots: { [jobs]: jobs } },
    notify: [{ on: ['failed'], url: 'http://127.0.0.1:9/' }],
    view: { listen: `${listen.host}:${listen.port}` },
  };
  place.writeConfig(JSON.stringify(config));
  const read = async (...args: string[]) => (await place.agent(...args, '--json')).stdout;

  const agent = await place.run();
  add('watch', await read('watch', jobId));
  await place.mirrored(job, 'stdout');
  add('jobs', await read('jobs'));
  add('verify', await read('verify', jobId, '--complete'));
  // A warning, with a hint.
  fs.chmodSync(sandbox.passwordFile, 0o644);
  add('check', await read('check'));
  for (const option of ['-n', '-c', '-l']) {
    const args = ['grep', '--config', place.configFile, '--json', option, 'ERROR|caf'];
    add('grep', ...(await place.plain(args)).stdout.trim().split('\n'));
  }
  add('errors', await read('errors'));
  add('notify --test', await read('notify', '--test'));
  add('version', (await place.plain(['version', '--json'])).stdout);
  const copies = path.join(place.mirror, jobId, 'results', task.specificationId);
  await until('the results', () => ['a.dat', 'b.dat'].every((name) => fs.existsSync(path.join(copies, name))));
  agent.signal('SIGTERM');
  await agent.ended;
  fs.writeFileSync(path.join(copies, 'a.dat'), 'dat!');
  fs.rmSync(path.join(copies, 'b.dat'));
  add('verify', await read('verify', jobId));
  // Neither the service nor the share sends the live files.
  await sandbox.fault({ kind: 'fault', operation: 'DownloadFileFromCluster' });
  place.writeConfig(JSON.stringify({ ...config, results: { intervalSeconds: 1 } }));
  add('sync', await read('sync', jobId));
  place.writeConfig(JSON.stringify(config));
  const loaded = await loadConfig(place.configFile);
  const { store, close } = openOwnStore(loaded, SILENT);
  context.onTestFinished(close);
  const error = { code: 'timeout', message: 'm', hint: null, since: 1, retryAt: 2 } as const;
  saveOutage(place.state, error);
  store.transaction(() => {
    const mismatches = [{ kind: 'rewritten', at: 0, reason: 'r', generation: 1, seenAt: 1 }] as const;
    for (const row of store.liveFiles.ofJob(jobId)) store.liveFiles.save({ ...row, error, mismatches });
    store.watchMine.save({ source: 'command', include: [], exclude: [], maxAgeMs: 1, maxJobs: 1, since: 1 });
    const [settings] = loaded.notify;
    const rule = settings === undefined ? '' : new Rule(settings).id;
    const event = newEvent('test', 1, { jobId });
    const due = { madeAt: 1, dueAt: 1, attempts: 0, lastError: null };
    store.outbox.save({ ...due, deliveryId: 'd', jobId, rule, event });
    store.jobs.setState(jobId, 'settled');
  });
  const stranger = http.createServer((_, response) => void response.end()).listen(listen);
  context.onTestFinished(() => void stranger.close());
  add('status', await read('status', jobId));
  add('results', await read('results', jobId));
  add('wait', await read('wait', jobId));
  add('notify --list', await read('notify', '--list'));
  await sandbox.fault({ kind: 'http', status: 418, operation: 'ListChangedFilesForJob' });
  add('check --probe', await read('check', '--probe'));
  const sorted = (keys: ReadonlyMap<string, Set<string>>) =>
    Object.fromEntries([...keys].map(([command, names]) => [command, [...names].sort()]));
  expect(sorted(printed)).toEqual(sorted(keysOnPage()));
});
