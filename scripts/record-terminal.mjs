// Writes docs/recorded-terminal.md: what the built program prints in the steps of the quick start, beside a simulated
// middleware. Run it as an ordinary user, after `npm run setup`: `node scripts/record-terminal.mjs`.
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SHOWN_AS = '/home/alice/try';
const MAX_LINES = 8;

const place = mkdtempSync(path.join(tmpdir(), 'jobtail-record-'));
chmodSync(place, 0o700);
const env = { PATH: `${ROOT}bin:${process.env.PATH}`, HOME: place, LANG: 'C.UTF-8', COLUMNS: '110' };
const background = [];

const start = (line) => {
  const child = spawn('sh', ['-c', `exec ${line}`], { cwd: place, env });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (text += bytes));
  return { child, text: () => text };
};

/** The line that is typed, and what it prints; the middle of a long output is left out. */
function shown(line, text) {
  const lines = text.replaceAll(place, SHOWN_AS).trimEnd().split('\n');
  const rest = lines.length - MAX_LINES;
  const cut = rest > 0 ? [...lines.slice(0, MAX_LINES / 2), '[...]', ...lines.slice(-MAX_LINES / 2)] : lines;
  return `$ ${line}\n${cut.join('\n').trimEnd()}`.trimEnd();
}

async function run(line) {
  const { child, text } = start(line);
  const code = await new Promise((resolve) => child.on('close', resolve));
  return shown(line, `${text()}${code === 0 ? '' : `[exit code ${code}]`}`);
}

/** Starts a command that goes on; its output is shown in a later step. */
async function runBeside(line, ready) {
  const { child, text } = start(line);
  background.push(child);
  while (!text().includes(ready)) await sleep(50);
  return { line: `${line} > ${line.split(' ')[1]}.log 2>&1 &`, text };
}

try {
  const sandbox = await runBeside('agent sandbox --job --seconds 60', 'agent watch');
  const [url] = /http:\/\/[\d.:]+/.exec(sandbox.text());
  const configured = await run(
    `agent init --url ${url} --username alice --secret-file sandbox/secrets/password --method password`,
  );
  const jobs = await run('agent jobs');
  const agent = await runBeside('agent run', 'agent ready');
  const steps = [];
  for (const line of ['agent watch 501', 'agent status', 'agent wait 501', 'agent verify 501', 'agent status'])
    steps.push(await run(line));
  const block = (...parts) => `\`\`\`\n${parts.join('\n')}\n\`\`\``;
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
  const page = [
    '# A recorded terminal',
    `Read this to see the [quick start](quickstart.md) before you try it. \`scripts/record-terminal.mjs\` recorded it with\nversion ${version}, beside a simulated middleware. \`[...]\` stands for lines that are left out.`,
    '## A middleware, and a configuration',
    block(`$ ${sandbox.line}`, configured, jobs),
    '## The agent as a daemon, and one job to its verified end',
    block(`$ ${agent.line}`, ...steps),
    'The systemd units start the same `agent run` ([service.md](service.md)). Its log of this time:',
    block(shown('cat run.log', agent.text()).split('\n').slice(1).join('\n')),
  ];
  writeFileSync(`${ROOT}docs/recorded-terminal.md`, `${page.join('\n\n')}\n`);
} finally {
  for (const child of background) child.kill('SIGTERM');
  await Promise.all(background.map((child) => new Promise((resolve) => child.on('close', resolve))));
  rmSync(place, { recursive: true, force: true });
}
