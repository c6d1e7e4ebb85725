// Takes the pictures of README.md and docs/view.md: the built program on the simulated cluster, its view in Debian's Chromium, into
// docs/images/. `npm run setup && node scripts/screenshots.mjs`; it takes the packages
// chromium and fonts-dejavu-core.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const TASK = fileURLToPath(new URL('../dist/simulator/demo/demo-task.js', import.meta.url));
/** So long the jobs write before the pictures are taken, so that their curves have points. */
const SECONDS = 200;
const CONFIG = 'config.yaml';
const place = mkdtempSync(path.join(tmpdir(), 'screenshots-'));
const started = [];

function start(args) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: place, stdio: ['ignore', 'pipe', 'ignore'] });
  started.push(child);
  return child;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** The sandbox says a configuration; the jobs it runs. */
async function startCluster() {
  const sandbox = start(['sandbox', '--directory', path.join(place, 'sandbox')]);
  let said = '';
  sandbox.stdout.on('data', (bytes) => (said += bytes));
  while (!said.includes('agent run')) await sleep(50);
  writeFileSync(
    path.join(place, CONFIG),
    `${said}\nview: {listen: "127.0.0.1:${await freePort()}"}\nwatchMine: true\n`,
  );
  const [, control] = /control +(\S+)/.exec(said);
  const token = readFileSync(path.join(place, 'sandbox', 'secrets', 'control-token'), 'utf8').trim();
  const submit = async (name, tasks, seconds) => {
    const commands = tasks.map((task) => ({
      name: task,
      command: [process.execPath, TASK, task, String(seconds), 'plain', '7'],
    }));
    const body = JSON.stringify({ name, tasks: commands });
    const response = await fetch(`${control}jobs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body,
    });
    if (!response.ok) throw new Error(await response.text());
    return await response.json();
  };
  await submit('mesh preparation', ['training'], 4);
  await submit('protein folding α-7', ['sensors'], SECONDS * 3);
  await submit('image classifier', ['training', 'training'], SECONDS * 2);
  return await submit('channel flow Re 5600', ['solver', 'training'], SECONDS + 25);
}

/** A link opens the view once. */
const linkNow = () =>
  execFileSync(process.execPath, [PROGRAM, 'view', '-c', CONFIG, '--no-open'], { cwd: place, encoding: 'utf8' }).trim();

async function takePictures(job) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args });
  const [solver, training] = job.tasks.map(({ taskId }) => taskId);
  const picture = async (name, hash, { width, height, colorScheme = 'light', prepare }) => {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(90_000);
    const link = linkNow();
    await page.goto(link);
    await page.locator('.connection.open').waitFor();
    await page.goto(`${new URL(link).origin}/${hash}`);
    await prepare(page);
    // What is drawn a moment later: numbers of lines, curves.
    await sleep(1_500);
    await page.screenshot({ path: path.join(IMAGES, `${name}.png`) });
    await context.close();
  };
  try {
    await picture('view-job', `#/job/${job.jobId}/live?file=${solver}/stdout&file=${solver}/log`, {
      width: 1280,
      height: 760,
      colorScheme: 'dark',
      prepare: async (page) => {
        const plotted = page.locator('.pane').nth(1);
        await plotted.locator('.row').nth(20).waitFor();
        await plotted.getByLabel('More').click();
        await plotted.getByRole('button', { name: 'Plot the numbers' }).click();
        await plotted.locator('.plot canvas').waitFor();
        await plotted.getByLabel('logarithmic').check();
      },
    });
    await picture('view-search', `#/job/${job.jobId}/live?file=${solver}/stdout`, {
      width: 1280,
      height: 640,
      prepare: async (page) => {
        await page.locator('.row').nth(20).waitFor();
        await page.getByRole('button', { name: 'Search' }).click();
        await page.getByRole('searchbox').fill('solving for p');
        await page.locator('.row.found').waitFor();
      },
    });
    await picture('view-phone', `#/job/${job.jobId}/live?file=${training}/log`, {
      width: 390,
      height: 700,
      prepare: (page) => page.locator('.row').nth(20).waitFor(),
    });
    await picture('view-jobs', '#/', {
      width: 1280,
      height: 420,
      prepare: (page) => page.locator('.job-row').nth(3).waitFor(),
    });
  } finally {
    await browser.close();
  }
}

try {
  mkdirSync(IMAGES, { recursive: true });
  const job = await startCluster();
  start(['run', '-c', CONFIG]);
  await sleep(SECONDS * 1_000);
  await takePictures(job);
} finally {
  for (const child of started.reverse()) {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  }
  rmSync(place, { recursive: true, force: true });
}
