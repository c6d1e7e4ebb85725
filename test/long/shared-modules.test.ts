/**
 * What test files share is loaded once for all files of a worker, so loading it does nothing: a hook would be one of the
 * first of these files only, and what it removes would be missing in the others.
 */
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished, TestRunner } from 'vitest';

const TESTS = path.join(import.meta.dirname, '..');
/** The setup file is loaded for each test file. */
const modules = fs
  .readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && name !== 'support/property-setup.ts')
  .sort();

/** Files that are made at import are made here. */
const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-shared-'));
afterAll(() => fs.rmSync(temporary, { recursive: true }));

/** What the process holds, by what it would be for a reader of a failure. */
function held(): readonly string[] {
  const listeners = process.eventNames().flatMap((event) => process.listeners(event as 'exit').map(() => event));
  return [
    `directory ${process.cwd()}`,
    ...Object.entries(process.env).map(([name, value]) => `environment ${name}=${value}`),
    ...listeners.map((event) => `listener of ${String(event)}`),
    // Servers, sockets, processes, watchers, timers; not the reading of the module, nor what the test runner does next.
    ...process.getActiveResourcesInfo().flatMap((kind) => (/^(FSReq|Immediate)/.test(kind) ? [] : [`open ${kind}`])),
    ...fs.readdirSync(temporary).map((name) => `file ${name}`),
  ];
}

/** What `load` leaves behind, and the hooks and tests that it registers; these are not kept. */
async function tracesOf(load: () => Promise<unknown>): Promise<string[]> {
  const suite = TestRunner.getCurrentSuite();
  const { on, tasks } = suite;
  const { TMPDIR } = process.env;
  const traces: string[] = [];
  suite.on = ((hook: string) => void traces.push(`hook ${hook}`)) as typeof on;
  process.env['TMPDIR'] = temporary;
  const before = [...held()];
  const count = tasks.length;
  try {
    await load();
  } catch (error) {
    traces.push(`error ${error}`);
  }
  await turn();
  traces.push(...tasks.splice(count).map(({ name }) => `test ${name}`));
  for (const each of held()) {
    const at = before.indexOf(each);
    if (at < 0) traces.push(each);
    else before.splice(at, 1);
  }
  suite.on = on;
  if (TMPDIR === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = TMPDIR;
  return traces;
}

const traces = new Map<string, string[]>();
for (const name of modules) traces.set(name, await tracesOf(() => import(path.join(TESTS, name))));

let server: net.Server | undefined;
const badTraces = await tracesOf(async () => {
  beforeAll(() => {});
  it('is a test', () => {});
  process.env['JOBTAIL_SHARED'] = '1';
  process.on('SIGUSR2', () => {});
  fs.mkdtempSync(path.join(os.tmpdir(), 'left-'));
  server = net.createServer().listen(0);
  onTestFinished(() => {});
});
server?.close();
process.removeAllListeners('SIGUSR2');
delete process.env['JOBTAIL_SHARED'];

it('sees what a module does', () => {
  expect(badTraces.map((trace) => trace.replace(/left-.*|Error: .*/, ''))).toEqual([
    'hook beforeAll',
    'error ',
    'test is a test',
    'environment JOBTAIL_SHARED=1',
    'listener of SIGUSR2',
    'open TCPServerWrap',
    'file ',
  ]);
});

it.each([...traces])('%s does nothing when it is loaded', (_, found) => {
  expect(found).toEqual([]);
});
