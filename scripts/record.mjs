// Records what README.md shows: runs the built program on a terminal (util-linux script), on the simulated cluster, and
// puts what it printed between the marks of the README. `npm run build && node scripts/record.mjs`
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const README = fileURLToPath(new URL('../README.md', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const COLUMNS = 100;
const place = mkdtempSync(path.join(tmpdir(), 'record-'));
const started = [];

/** What a command leaves on a terminal. */
function onTerminal(args, { seconds } = {}) {
  const limit = seconds === undefined ? '' : `timeout -s INT ${seconds} `;
  const command = `stty cols ${COLUMNS} rows 40; ${limit}'${process.execPath}' '${PROGRAM}' ${args}`;
  const env = { ...process.env, TERM: 'xterm', NO_COLOR: '1', LC_ALL: 'C.UTF-8' };
  const { stdout, status } = spawnSync('script', ['-qec', command, '/dev/null'], { cwd: place, env, encoding: 'utf8' });
  // 124 is how `timeout` ends.
  if (status !== 0 && status !== 124) throw new Error(`agent ${args} ended with ${status}:\n${stdout}`);
  return stripVTControlCharacters(stdout.replaceAll('\r\n', '\n'))
    .split('\n')
    .map((line) => line.split('\r').at(-1).trimEnd())
    .join('\n')
    .replaceAll(place, '/home/alice/cluster')
    .trim();
}

function start(args) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: place, stdio: ['ignore', 'pipe', 'ignore'] });
  started.push(child);
  return child;
}

function record(name, command, text) {
  const readme = readFileSync(README, 'utf8');
  const marks = new RegExp(`(<!-- recorded: ${name} -->\n)[\\s\\S]*?(<!-- end -->)`);
  if (!marks.test(readme)) throw new Error(`README.md has no place for ${name}`);
  writeFileSync(
    README,
    readme.replace(marks, (_, begin, end) => `${begin}\`\`\`\n$ ${command}\n${text}\n\`\`\`\n${end}`),
  );
}

try {
  const sandbox = start(['sandbox', '--directory', path.join(place, 'sandbox'), '--job']);
  let said = '';
  sandbox.stdout.on('data', (bytes) => (said += bytes));
  while (!/agent watch .*\n/.test(said)) await sleep(50);
  // All that it says is a configuration.
  writeFileSync(path.join(place, 'config.yaml'), said);
  const [, job] = /agent watch (\d+)/.exec(said);
  start(['run']);
  spawnSync(process.execPath, [PROGRAM, 'watch', job], { cwd: place });
  await sleep(8_000);
  record(
    'tail',
    `agent tail ${job} -f -n 2`,
    onTerminal(`tail ${job} -f -n 2`, { seconds: 4 }).split('\n').slice(0, 20).join('\n'),
  );
  record('jobs', 'agent jobs', onTerminal('jobs'));
  record('status', 'agent status', `${onTerminal('status')}\n$ agent status ${job}\n${onTerminal(`status ${job}`)}`);
} finally {
  for (const child of started) {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  }
  rmSync(place, { recursive: true, force: true });
}
mkdirSync(place);
const demo = onTerminal('demo --seconds 5').split('\n');
rmSync(place, { recursive: true, force: true });
record('demo', 'agent demo', ['[...]', ...demo.slice(demo.findLastIndex((line) => /^\d+ {2}/.test(line)))].join('\n'));
