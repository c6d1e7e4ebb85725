// Takes the pictures of README.md and docs/view.md: the built program on the simulated cluster, its view in Debian's Chromium, into
// docs/images/. `npm run setup && node scripts/screenshots.mjs`; it takes the packages
// chromium and fonts-dejavu-core.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

/** The sandbox prints a configuration; the jobs it runs. Returns the last one. */
async function startCluster() {
  const sandbox = start(['sandbox', '--directory', path.join(place, 'sandbox')]);
  let said = '';
  sandbox.stdout.on('data', (bytes) => (said += bytes));
  while (!said.includes('agent run')) await sleep(50);
  writeFileSync(path.join(place, CONFIG), `${said}\nview: {listen: "127.0.0.1:0"}\nwatchMine: true\n`);
  const [, control] = /control +(\S+)/.exec(said);
  const token = readFileSync(path.join(place, 'sandbox', 'secrets', 'control-token'), 'utf8').trim();
  let job;
  for (const [name, tasks, seconds] of [
    ['mesh preparation', ['training'], 4],
    ['protein folding α-7', ['sensors'], SECONDS * 3],
    ['image classifier', ['training', 'training'], SECONDS * 2],
    ['channel flow Re 5600', ['solver', 'training'], SECONDS + 25],
  ]) {
    const commandOf = (task) => [process.execPath, TASK, task, String(seconds), 'plain', '7'];
    const body = JSON.stringify({ name, tasks: tasks.map((task) => ({ name: task, command: commandOf(task) })) });
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${control}jobs`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(await response.text());
    job = await response.json();
  }
  return job;
}

const rowOf = (at) => (page) => page.locator('.row').nth(at).waitFor();
/** A name, the part of the view, its size, its colours, and what is done before. */
const picturesOf = (job, [solver, training]) => [
  ['view-job', `${job}/live?file=${solver}/stdout&file=${solver}/log`, [1280, 760], 'dark', plotNumbers],
  ['view-search', `${job}/live?file=${solver}/stdout`, [1280, 640], 'light', search],
  ['view-phone', `${job}/live?file=${training}/log`, [390, 700], 'light', rowOf(20)],
  ['view-jobs', '#/', [1280, 420], 'light', (page) => page.locator('.job-row').nth(3).waitFor()],
];

async function plotNumbers(page) {
  const plotted = page.locator('.pane').nth(1);
  await rowOf(20)(plotted);
  await plotted.getByLabel('More').click();
  await plotted.getByRole('button', { name: 'Plot the numbers' }).click();
  await plotted.locator('.plot canvas').waitFor();
  await plotted.getByLabel('logarithmic').check();
}

async function search(page) {
  await rowOf(20)(page);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('searchbox').fill('solving for p');
  await page.locator('.row.found').waitFor();
}

async function takePictures({ jobId, tasks }) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args });
  const pictures = picturesOf(
    `#/job/${jobId}`,
    tasks.map(({ taskId }) => taskId),
  );
  for (const [name, hash, [width, height], colorScheme, prepare] of pictures) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(90_000);
    // A link opens the view once.
    const command = [PROGRAM, 'view', '-c', CONFIG, '--no-open'];
    const link = execFileSync(process.execPath, command, { cwd: place, encoding: 'utf8' }).trim();
    await page.goto(link);
    await page.locator('.connection.open').waitFor();
    await page.goto(`${new URL(link).origin}/${hash}`);
    await prepare(page);
    // What is drawn a moment later: numbers of lines, curves.
    await sleep(1_500);
    await page.screenshot({ path: path.join(IMAGES, `${name}.png`) });
    await context.close();
  }
  await browser.close();
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
