// `npm run test:mutants`: makes random mistakes in the sources, one at a time and in memory only. For each it runs the tests
// of the same module that import the changed file, and those of others that do so directly: the nearest first, until one
// fails, and the broad ones last. Prints each mistake that no test finds, and for each module how many were found. Long
// tests take part with JOBTAIL_LONG=1 only.
//
// FOLDER...      of these modules or files (src/agent/loop, or agent/loop); all, if none
// --count N      so many mistakes of each module (60), or with --changed in all
// --changed REF  in the files that differ from REF only
// --near N       by the first N of these test files
// --seed N       the same mistakes again: a run prints its seed
// --minutes N    begins none later than that
// --write        puts the scores into docs/dev/evidence.md
import { execFileSync, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { testsThatImport } from './mutants-imports.mjs';
import { thatCompile } from './mutants-types.mjs';
import { mutationsOf } from './mutations.mjs';

/** Few of the candidates compile. */
const CANDIDATES = 8;
/** A mistake that makes a test file hang is found: it takes longer than this, and so many times as long as without one. */
const HANG_MS = 60_000;
const HANG_TIMES = 5;
/** The tests that compose much: lives of jobs, printed and generated, and the whole daemon. */
const LIFE = ['test/virtual/printed.test.ts', 'test/virtual/life.test.ts'];
const WIRING = ['test/wiring/'];
const FLEET = ['test/virtual/fleet/printed.test.ts', ...WIRING];
const BROAD = { agent: LIFE, store: LIFE, notify: LIFE, daemon: WIRING, config: WIRING, fleet: FLEET, cli: WIRING };
const EVIDENCE = 'docs/dev/evidence.md';

const root = path.dirname(import.meta.dirname);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '60' },
    changed: { type: 'string' },
    near: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    minutes: { type: 'string', default: '600' },
    write: { type: 'boolean', default: false },
  },
});
// Not in the directory for temporary files: it is a place for a program.
const place = mkdtempSync(path.join(root, '.mutants-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const chance = chanceOf(Number(values.seed));
const texts = new Map(wantedFiles().map((file) => [file, readFileSync(path.join(root, file), 'utf8')]));
const mutants = await chosen();
say(`${mutants.length} mistakes in ${new Set(mutants.map(({ file }) => file)).size} files, --seed ${values.seed}`);
const workers = Array.from({ length: mutants.length === 0 ? 0 : os.availableParallelism() }, startWorker);
const testFiles = (await workers[0]?.files()) ?? [];
const steps = testsThatImport(root, new Set(mutants.map(({ file }) => file)));
/** What test files do without a mistake. */
const unharmed = new Map();
await inTurn(mutants, async (mutant, worker) => {
  if (performance.now() >= values.minutes * 60_000) return;
  mutant.state = await outcomeOf(mutant, worker);
  if (mutant.state !== 'found') sayMistake(mutant);
});
for (const worker of workers) worker.stop();
report();

function wantedFiles() {
  const folders = positionals.map((folder) => folder.replace(/^(?!src\/)/, 'src/').replace(/\/$/, ''));
  const isWanted = (file) => folders.length === 0 || folders.some((folder) => `${file}/`.startsWith(`${folder}/`));
  const changed = values.changed && execFileSync('git', ['diff', '--name-only', values.changed], { encoding: 'utf8' });
  return readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => `src/${file}`)
    .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.d.ts') && isWanted(file))
    .filter((file) => changed === undefined || changed.split('\n').includes(file))
    .sort();
}

/**
 * `agent/loop` for src/agent/loop/x.ts, but `agent` where no folder of tests is called so; `store` for src/store/x.ts, and
 * nothing for src/x.ts.
 */
function moduleOf(file) {
  const [, first, second, third] = file.split('/');
  if (second === undefined) return '';
  return third !== undefined && existsSync(path.join(root, 'test/agent', second)) && first === 'agent'
    ? `agent/${second}`
    : first;
}

/** The tests of the same module, and those of others that import the file itself: the nearest first. Then broad ones. */
function testsOf(file) {
  const module = moduleOf(file);
  const isBeside = (test) => path.dirname(test) === `test/${module.replace(/\/.*/, '')}`;
  const isOwn = (test) => (module !== '' && test.startsWith(`test/${module}/`)) || isBeside(test);
  // What all modules use has few tests of its own.
  const far = module === '' ? 2 : 1;
  const near = [...(steps.get(file) ?? [])].filter(([test, distance]) => isOwn(test) || distance <= far);
  const tests = near.map(([test]) => test).filter((test) => testFiles.includes(test));
  const places = BROAD[module.replace(/\/.*/, '')] ?? [];
  const broad = places.flatMap((place) => testFiles.filter((test) => test.startsWith(place)));
  return [...tests.filter((test) => !broad.includes(test)), ...broad].slice(
    0,
    Number(values.near ?? Number.POSITIVE_INFINITY),
  );
}

async function chosen() {
  const groupOf = ({ file }) => (values.changed === undefined ? moduleOf(file) : '');
  const count = Number(values.count);
  const all = [...texts].flatMap(([file, text]) => mutationsOf(text, file));
  const candidates = groups(all, groupOf).flatMap(([, group]) => shuffled(group).slice(0, count * CANDIDATES));
  const compiling = await thatCompile(candidates, applied);
  // One of each line: a table of numbers would be most of them.
  const different = groups(compiling, ({ file, line }) => `${file}:${line}`).map(([, [first]]) => first);
  const wanted = groups(different, groupOf).map(([, group]) => group.slice(0, count));
  // The first of each module, then the second: where time ends, each has had its share.
  return Array.from({ length: count }, (_, place) => wanted.flatMap((group) => group.slice(place, place + 1))).flat();
}

function applied({ file, start, end, instead }) {
  const text = texts.get(file);
  return text.slice(0, start) + instead + text.slice(end);
}

async function outcomeOf({ file, ...mutant }, worker) {
  const tests = testsOf(file);
  const sources = { [file]: applied({ file, ...mutant }) };
  let limit = HANG_MS;
  while (tests.length > 0) {
    const { isOk, failed, hangs } = await worker.run({ tests, sources }, limit);
    if (isOk === true) return 'not found';
    const { passes, needs } = await withoutMistake(failed, worker);
    if (!passes) tests.splice(tests.indexOf(failed), 1);
    else if (hangs && limit < needs) limit = needs;
    else return 'found';
  }
  return 'not run';
}

/** Whether a test file passes without a mistake, and after what time it hangs with one. */
async function withoutMistake(file, worker) {
  if (!unharmed.has(file)) {
    const before = performance.now();
    const { isOk: passes = false } = await worker.run({ tests: [file], sources: {} }, 30 * HANG_MS);
    unharmed.set(file, { passes, needs: HANG_TIMES * (performance.now() - before) });
    if (!passes) say(`${file} fails without a mistake`);
  }
  return unharmed.get(file);
}

/** Works on all items, each by a worker that is free. */
async function inTurn(items, work) {
  const queue = [...items];
  const workOn = async (worker) => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item, worker);
  };
  await Promise.all(workers.map(workOn));
}

function startWorker() {
  let child;
  let files;
  const start = () => {
    const env = { ...process.env, JOBTAIL_MUTANTS: place, JOBTAIL_LIFE_RUNS: '15', JOBTAIL_LIFE_SHRINK: '0' };
    const stdio = ['ignore', 'ignore', 'ignore', 'ipc'];
    child = fork(path.join(root, 'scripts', 'mutants-worker.mjs'), { cwd: root, detached: true, stdio, env });
    files = new Promise((resolve) => child.once('message', resolve));
  };
  /** With what the tests have started. */
  const stop = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  start();
  process.once('exit', stop);
  /** What a run answers, or the file that ended the process or took longer than the limit: then another takes its place. */
  const run = async (message, limit) => {
    await files;
    const left = new Set(message.tests);
    let timer;
    const answer = await new Promise((resolve) => {
      const endBy = (hangs) => resolve({ failed: [...left][0], hangs });
      timer = setTimeout(endBy, limit, true);
      child.once('exit', () => endBy(false)).send(message);
      child.on('message', ({ ended, ...result }) => {
        if (ended === undefined) return resolve(result);
        left.delete(ended);
        clearTimeout(timer);
        timer = setTimeout(endBy, limit, true);
      });
    });
    clearTimeout(timer);
    child.removeAllListeners('exit').removeAllListeners('message');
    if (answer.hangs !== undefined) {
      stop();
      start();
    }
    return answer;
  };
  return { files: () => files, stop, run };
}

function sayMistake({ state, file, line, kind, start, end, instead }) {
  const shown = (text) => text.replaceAll(/\s+/g, ' ').trim().slice(0, 100);
  say(`${state}: ${file}:${line} ${kind}: ${shown(texts.get(file).slice(start, end))} -> ${shown(instead)}`);
}

function report() {
  const tried = mutants.filter(({ state }) => state !== undefined);
  const scores = groups(tried, ({ file }) => moduleOf(file)).map(([module, own]) => [module, scoreOf(own)]);
  for (const [module, { text }] of scores) say(`${module || 'src'}: ${text}`);
  say(`${scoreOf(tried).text}, in ${Math.round(performance.now() / 1_000)} s`);
  if (values.write) writeScores(scores);
}

function scoreOf(own) {
  const found = own.filter(({ state }) => state === 'found').length;
  const percent = own.length === 0 ? 100 : Math.floor((100 * found) / own.length);
  return { found, all: own.length, percent, text: `${found} of ${own.length} found, ${percent} %` };
}

/** The rows of modules that were not run stay. */
function writeScores(scores) {
  const file = path.join(root, EVIDENCE);
  const rows = new Map(scores.map(([module, { found, all, percent }]) => [module || 'src', [found, all, percent]]));
  const old = readFileSync(file, 'utf8');
  const table = /(?<=\n\| module .*\n\|---.*\n)(?:\|.*\n)*/;
  for (const [, module, ...row] of table.exec(old)[0].matchAll(/\| (\S+) \| (\d+) \| (\d+) \| (\d+) % \|/g))
    if (!rows.has(module)) rows.set(module, row);
  const lines = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([module, row]) => `| ${module} | ${row.join(' | ')} % |\n`);
  writeFileSync(file, old.replace(table, lines.join('')));
}

function groups(items, keyOf) {
  const found = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(item);
  }
  return [...found];
}

function shuffled(items) {
  const keyed = items.map((item) => [chance(), item]);
  return keyed.sort(([a], [b]) => a - b).map(([, item]) => item);
}

/** Numbers from 0 to 1 by a seed. */
function chanceOf(seed) {
  let drawn = 0;
  return () => createHash('md5').update(`${seed} ${drawn++}`).digest().readUInt32LE() / 2 ** 32;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
