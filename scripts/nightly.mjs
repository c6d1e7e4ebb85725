// `npm run test:nightly`: what takes a night and looks for what is new, with fresh seeds. Each step runs whatever failed
// before it, and two at a time: about half of what the programs, browsers and clusters do is waiting. nightly/DATE.json
// gets the commit, and of each step its seconds, its seeds and what it said; `--only NAME` runs one step, `--share 0.1` a
// tenth of what is made by number or by time.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const seed = Math.floor(Math.random() * 2 ** 31);
const VITEST = ['npx', 'vitest', 'run', `--sequence.seed=${seed}`];
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    share: { type: 'string', default: '1' },
  },
});
const amount = (whole) => String(Math.ceil(whole * Number(values.share)));

const LARGE = {
  ...{ JOBTAIL_LONG: '1', JOBTAIL_NIGHTLY: '1', JOBTAIL_SEED: `${seed}` },
  ...{ JOBTAIL_KILLS: amount(200), JOBTAIL_BACKLOG_MIB: '2048', JOBTAIL_VIEW_MIB: '2048' },
};

/** Where each step's output has these words, they are kept as its result. */
const RESULTS =
  /^.*(?: passed, \d+ failed|simulated hours| found, |^not found|seed| node_modules\/|installs and runs|equal| run$|mismatch).*$/gm;

/** Those of one list run one after the other, beside those of the other one. */
const STEPS = [
  {
    mutants: { command: ['npm', 'run', '--silent', 'test:mutants', '--', '--write', '--count', amount(60)] },
    simulation: {
      command: [...VITEST, 'test/virtual/fleet/long/fleet.test.ts'],
      environment: { JOBTAIL_LONG: '1', JOBTAIL_VIRTUAL_SECONDS: amount(3_600) },
    },
    lives: { command: [...VITEST, 'test/virtual/life.test.ts'], environment: { JOBTAIL_LIFE_RUNS: amount(20_000) } },
    histories: {
      command: [...VITEST, 'test/agent/live/model.test.ts'],
      environment: { JOBTAIL_MODEL_RUNS: amount(50_000) },
    },
    properties: { command: VITEST, environment: { JOBTAIL_PROPERTY_TIMES: amount(10) } },
  },
  {
    // It ends with 1 where there are some.
    packages: { command: ['sh', '-c', 'npm outdated || true'] },
    long: { command: [...VITEST, '/long/', 'test/e2e/kill.test.ts'], environment: LARGE },
    'system packages': { command: ['scripts/check-system-packages.sh'] },
    soak: { command: ['npm', 'run', '--silent', 'soak', '--', '--minutes', amount(120)] },
  },
];

const directory = path.join(root, 'nightly');
mkdirSync(directory, { recursive: true });
const began = new Date().toISOString();
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
const report = { began, commit, seed, share: Number(values.share), steps: {} };
const file = path.join(directory, `${began.replaceAll(':', '')}.json`);
await run('set-up', ['npm', 'run', '--silent', 'setup:fleet']);
await Promise.all(STEPS.map(runInTurn));
process.stdout.write(`${path.relative(root, file)}\n`);

async function runInTurn(steps) {
  for (const [name, { command, environment }] of Object.entries(steps)) {
    if (values.only !== undefined && values.only !== name) continue;
    const start = performance.now();
    const { code, output } = await run(name, command, environment);
    const seconds = Math.round((performance.now() - start) / 1_000);
    const results = output.match(RESULTS) ?? [];
    const failure = code === 0 ? {} : { failure: output.split('\n').slice(-400).join('\n') };
    report.steps[name] = { ok: code === 0, seconds, command: command.join(' '), environment, results, ...failure };
    if (code !== 0) process.exitCode = 1;
    writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  }
}

/** Runs a command in the checkout; its output is shown, each line with the name of the step, and returned. */
async function run(name, [program, ...args], environment = {}) {
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, ...environment, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      process.stderr.write(text.replaceAll(/^(?=.)/gm, `${name}: `));
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
