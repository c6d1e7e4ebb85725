// Records what README.md and docs/transcripts.md show: runs the built program on a terminal (util-linux script), on the
// simulated cluster, and puts its output between their marks. `npm run build && node scripts/record.mjs`
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const DOCUMENTS = ['README.md', 'docs/transcripts.md'].map((name) =>
  fileURLToPath(new URL(`../${name}`, import.meta.url)),
);
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const COLUMNS = 100;
const place = mkdtempSync(path.join(tmpdir(), 'record-'));
// Named, because root uses no configuration of the working directory.
const CONFIG = path.join(place, 'config.yaml');
const ENV = { ...process.env, AGENT_CONFIG: CONFIG };
const started = [];

/** What a command leaves on a terminal. */
function onTerminal(args, { seconds } = {}) {
  const limit = seconds === undefined ? '' : `timeout -s INT ${seconds} `;
  const command = `stty cols ${COLUMNS} rows 40; ${limit}'${process.execPath}' '${PROGRAM}' ${args}`;
  const env = { ...ENV, TERM: 'xterm', NO_COLOR: '1', LC_ALL: 'C.UTF-8' };
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
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: place,
    env: ENV,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  started.push(child);
  return child;
}

function record(name, command, text) {
  const marks = new RegExp(`(<!-- recorded: ${name} -->\n)[\\s\\S]*?(<!-- end -->)`);
  const document = DOCUMENTS.find((file) => marks.test(readFileSync(file, 'utf8')));
  if (document === undefined) throw new Error(`no document has a place for ${name}`);
  writeFileSync(
    document,
    readFileSync(document, 'utf8').replace(
      marks,
      (_, begin, end) => `${begin}\`\`\`\n$ ${command}\n${text}\n\`\`\`\n${end}`,
    ),
  );
}

try {
  const sandbox = start(['sandbox', '--directory', path.join(place, 'sandbox'), '--job']);
  let said = '';
  sandbox.stdout.on('data', (bytes) => (said += bytes));
  while (!/agent watch .*\n/.test(said)) await sleep(50);
  // All that it says is a configuration.
  writeFileSync(CONFIG, said);
  const [, job] = /agent watch (\d+)/.exec(said);
  start(['run']);
  spawnSync(process.execPath, [PROGRAM, 'watch', job], { cwd: place, env: ENV });
  await sleep(8_000);
  record(
    'tail',
    `agent tail ${job} -f -n 2`,
    onTerminal(`tail ${job} -f -n 2`, { seconds: 4 }).split('\n').slice(0, 9).join('\n'),
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
