// `npm run test:nightly`: what takes hours and looks for what is new, with fresh seeds. Each step runs whatever failed
// before it. nightly/DATE.json gets the commit, and of each step its seconds, its seeds and what it said; `--only NAME`
// runs one step.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const seed = Math.floor(Math.random() * 2 ** 31);
const NODE = '20.19.0';
const VITEST = ['npx', 'vitest', 'run', `--sequence.seed=${seed}`];
const LARGE = {
  ...{ JOBTAIL_LONG: '1', JOBTAIL_NIGHTLY: '1', JOBTAIL_SEED: `${seed}` },
  ...{ JOBTAIL_KILLS: '200', JOBTAIL_BACKLOG_MIB: '2048', JOBTAIL_VIEW_MIB: '2048' },
};

/** Where each step's output has these words, they are kept as its result. */
const RESULTS =
  /^.*(?: passed, \d+ failed|simulated hours| found, |seed|newer|installs and runs|equal| run$|mismatch).*$/gm;

const STEPS = {
  packages: { command: ['node', 'scripts/nightly.mjs', '--newer'] },
  properties: { command: VITEST, environment: { JOBTAIL_PROPERTY_TIMES: '10' } },
  histories: { command: [...VITEST, 'test/agent/live/model.test.ts'], environment: { JOBTAIL_MODEL_RUNS: '50000' } },
  lives: { command: [...VITEST, 'test/virtual/life.test.ts'], environment: { JOBTAIL_LIFE_RUNS: '20000' } },
  simulation: {
    command: [...VITEST, 'test/virtual/virtual.test.ts', 'test/virtual/fleet/long/fleet.test.ts'],
    environment: { JOBTAIL_LONG: '1', JOBTAIL_VIRTUAL_SECONDS: '7200' },
  },
  long: { command: [...VITEST, '/long/', 'test/e2e/kill.test.ts'], environment: LARGE },
  mutants: { command: ['npm', 'run', '--silent', 'test:mutants', '--', '--write'], environment: { JOBTAIL_LONG: '1' } },
  'system packages': { command: ['scripts/check-system-packages.sh'] },
  soak: { command: ['npm', 'run', '--silent', 'soak'] },
};

const { values } = parseArgs({ options: { only: { type: 'string' }, newer: { type: 'boolean', default: false } } });
if (values.newer) await printNewer();
else await runSteps();

async function runSteps() {
  const directory = path.join(root, 'nightly');
  mkdirSync(directory, { recursive: true });
  const began = new Date().toISOString();
  const report = { began, commit: (await run(['git', 'rev-parse', 'HEAD'])).output.trim(), seed, steps: {} };
  const file = path.join(directory, `${began.replaceAll(':', '')}.json`);
  await run(['npm', 'run', '--silent', 'setup:fleet']);
  for (const [name, { command, environment }] of Object.entries(STEPS)) {
    if (values.only !== undefined && values.only !== name) continue;
    process.stderr.write(`== ${name}\n`);
    const start = performance.now();
    const { code, output } = await run(command, environment);
    const seconds = Math.round((performance.now() - start) / 1_000);
    const results = output.match(RESULTS) ?? [];
    const failure = code === 0 ? {} : { failure: output.split('\n').slice(-400).join('\n') };
    report.steps[name] = { ok: code === 0, seconds, command: command.join(' '), environment, results, ...failure };
    if (code !== 0) process.exitCode = 1;
    writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  }
  process.stdout.write(`${path.relative(root, file)}\n`);
}

/** Runs a command in the checkout; its output is shown and returned. */
async function run([program, ...args], environment = {}) {
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, ...environment, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      process.stderr.write(text);
    });
  const code = await new Promise((resolve) => {
    child.on('close', resolve);
    child.on('error', (error) => {
      output += `${error}\n`;
      resolve(1);
    });
  });
  return { code, output };
}

/** Prints each package with a newer version that runs on the oldest Node.js that is promised. */
async function printNewer() {
  const npm = (...args) => execFileSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const { satisfies, gt } = createRequire(`${npm('root', '--global')}/npm/package.json`)('semver');
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  for (const [name, current] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
    // The types of Node.js are those of the oldest one.
    const range = name === '@types/node' ? `^${current}` : `>=${current}`;
    const found = [JSON.parse(npm('view', `${name}@${range}`, 'name', 'version', 'engines.node', '--json'))].flat();
    const newest = found
      .filter(({ version, 'engines.node': node = '*' }) => gt(version, current) && satisfies(NODE, node))
      .reduce((best, { version }) => (gt(version, best) ? version : best), current);
    if (newest !== current) process.stdout.write(`${name} ${current}: newer is ${newest}\n`);
  }
}
