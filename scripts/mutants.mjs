// `npm run test:mutants`: plants each mistake of mutants.txt, one at a time, and runs the tests near it. Prints for each
// whether a test caught it, and its seconds. Ends with 1 if one survives that has no reason, or has no place any more.
//
// NAME...   only these; --check: only whether each place exists; --at-a-time N: so many at a time (2)
//
// An item of mutants.txt: its name and what is wrong; the file and what in it (a function, a constant, Class.member, or
// Class alone); `-` the text of a syntax node in there, whatever its white space; `+` what stands there instead; `test`
// the files of tests, or `simulation` with `single` or `fleet` and what the first runs find; `survives` why no user could
// notice.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseAst } from 'rolldown/parseAst';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const LIMIT_MS = 600_000;
/** A test that takes longer hangs. */
const HANGING = '--testTimeout=120000';
/** All tests, and so many runs of a property that a mistake is not met by chance. */
const MANY = { JOBTAIL_LONG: '1', JOBTAIL_NIGHTLY: '1', JOBTAIL_PROPERTY_TIMES: '3' };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false }, 'at-a-time': { type: 'string', default: '2' } },
});
const all = readFileSync(path.join(root, 'scripts', 'mutants.txt'), 'utf8')
  .split(/\n\n+/)
  .filter((item) => item.trim() !== '' && !item.startsWith('#'))
  .map(itemOf);
const chosen = positionals.length === 0 ? all : all.filter(({ name }) => positionals.includes(name));
const outcomes = new Map();
const queue = [...chosen];
await Promise.all(Array.from({ length: Number(values['at-a-time']) }, work));

const count = (wanted) => [...outcomes.values()].filter((outcome) => outcome === wanted).length;
const [caught, misplaced] = [count('caught'), count('misplaced')];
const unexplained = chosen.filter(({ name, survives }) => outcomes.get(name) === 'survived' && survives === undefined);
process.stdout.write(
  `${chosen.length} mutants: ${caught} caught, ${count('survived')} survived (${unexplained.length} without a reason), ` +
    `${misplaced} without a place, in ${Math.round(performance.now() / 1_000)} s\n`,
);
if (misplaced + unexplained.length > 0) process.exitCode = 1;

async function work() {
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const began = performance.now();
    const outcome = await outcomeOf(mutant);
    outcomes.set(mutant.name, outcome);
    if (values.check && outcome !== 'misplaced') continue;
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    const why = outcome === 'survived' ? `: ${mutant.survives ?? 'no reason is known'}` : '';
    process.stdout.write(`${outcome} ${mutant.name} ${mutant.what}, ${mutant.file}, ${seconds} s${why}\n`);
  }
}

function itemOf(item) {
  const [title = '', place = '', ...lines] = item.trim().split('\n');
  const [, name, what] = /^(\S+): (.*)$/.exec(title) ?? [];
  const [file, within] = place.split(' ');
  const of = (mark) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length).trim());
  const [text, instead] = ['-', '+'].map((mark) => of(mark).join('\n'));
  const [, kind, finding] = /^(\S+) (.*)$/.exec(of('simulation ')[0] ?? '') ?? [];
  const tests = of('test ').flatMap((line) => line.split(' '));
  return { name, what, file, within, text, instead, tests, kind, finding, survives: of('survives:')[0] };
}

async function outcomeOf(mutant) {
  const source = readFileSync(path.join(root, 'src', mutant.file), 'utf8');
  const places = placesOf(source, mutant);
  if (places.length !== 1) {
    process.stdout.write(`${mutant.name}: ${places.length} places for ${mutant.text}\n`);
    return 'misplaced';
  }
  if (values.check) return 'placed';
  const [{ start, end }] = places;
  const text = source.slice(0, start) + mutant.instead + source.slice(end);
  const planted = { file: path.join(root, 'src', mutant.file), text };
  const [program, ...args] = mutant.finding === undefined ? testsOf(mutant) : simulationOf(mutant);
  const env = { ...process.env, ...MANY, JOBTAIL_MUTANT: JSON.stringify(planted) };
  return await new Promise((resolve) => {
    const options = { cwd: root, env, maxBuffer: 2 ** 28, timeout: LIMIT_MS, killSignal: 'SIGKILL' };
    const child = execFile(program, args, options, (error, stdout) => {
      // A run that found no test shows nothing.
      if (stdout.includes('No test files found')) process.stdout.write(`${mutant.name}: no such test\n`);
      const isFound = mutant.finding !== undefined && new RegExp(mutant.finding, 'm').test(failureIn(stdout));
      resolve((mutant.finding === undefined ? error !== null : isFound) ? 'caught' : 'survived');
    });
    child.stdin.end();
  });
}

function testsOf({ tests }) {
  const vitest = path.join(root, 'node_modules', '.bin', 'vitest');
  return [vitest, 'run', '--bail=1', '--no-file-parallelism', HANGING, ...tests.map((test) => `test/${test}`)];
}

/** The first seeds: less than a minute on a machine at rest. */
function simulationOf({ kind }) {
  const [hook, script] = ['planting.mjs', 'seeds.ts'].map((name) => path.join(root, 'test', 'virtual', name));
  const seeds = { of: kind, first: 1, step: 1, runs: 16, seconds: 3_600 };
  return [process.execPath, '--import', hook, script, JSON.stringify(seeds)];
}

function failureIn(stdout) {
  try {
    return JSON.parse(stdout).failure ?? '';
  } catch {
    return '';
  }
}

/** Where nodes with the text stand, within what is named. */
function placesOf(source, { file, within, text }) {
  const scopes = within === undefined ? [parsed(source, file)] : scopesOf(parsed(source, file), within.split('.'));
  const wanted = withoutSpace(text);
  const found = new Map();
  for (const scope of scopes)
    visit(scope, ({ start, end }) => {
      if (withoutSpace(source.slice(start, end)) === wanted) found.set(`${start}-${end}`, { start, end });
    });
  // An expression and the statement that it is differ by a semicolon only in their text.
  return [...found.values()];
}

function withoutSpace(text) {
  return text.replaceAll(/\s+/g, '').replaceAll(/,(?=[)\]}])/g, '');
}

function parsed(source, file) {
  return parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' });
}

function scopesOf(tree, [name, ...rest]) {
  const found = [];
  visit(tree, (node) => {
    const key = node.id ?? node.key;
    const own = key?.type === 'PrivateIdentifier' ? `#${key.name}` : (key?.name ?? key?.value);
    if (own === name) found.push(node);
  });
  return rest.length === 0 ? found : found.flatMap((node) => scopesOf(node, rest));
}

function visit(node, onNode) {
  if (Array.isArray(node)) for (const each of node) visit(each, onNode);
  else if (typeof node === 'object' && node !== null) {
    if (typeof node.type === 'string' && typeof node.start === 'number') onNode(node);
    for (const each of Object.values(node)) visit(each, onNode);
  }
}
