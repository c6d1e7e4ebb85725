/** A log of JOBTAIL_VIEW_MIB (256): opened, read at any place, searched and followed, in little memory. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { JobId, TaskId } from '../../../../../src/job.ts';
import { liveParts } from '../../../../../src/safe-names.ts';
import { ownState } from '../../../../cli/own-state.ts';
import { Program } from '../../../../support/e2e-program.ts';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../../support/view-browser.ts';

const MIB = 2 ** 20;
/** Of one line, its end included: so places are known. */
const LINE_BYTES = 64;

/** The line of this number, from 0, without its end. */
function lineOf(number: number): string {
  return `step ${String(number).padStart(10, '0')} residual 1.234567e-03 `.padEnd(LINE_BYTES - 1, '.');
}

/** The configuration of a state with a job whose mirror of stdout has so many MiB of such lines. */
async function stateWithLog(mib: number) {
  const { file: config, config: settings, store } = await ownState();
  const [jobId, taskId] = ['501' as JobId, '9001' as TaskId];
  const request = { jobId, tasks: [taskId], files: ['stdout'], results: false, settleAfterMs: null } as const;
  store.jobs.watch({ ...request, source: 'command' }, 1);
  const mirror = path.join(settings.mirror.directory, ...liveParts(jobId, { taskId, file: 'stdout' }));
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  const file = fs.openSync(mirror, 'w');
  for (let piece = 0, line = 0; piece < mib; piece++) {
    let text = '';
    for (; text.length < MIB; line++) text += `${lineOf(line)}\n`;
    fs.writeSync(file, text);
  }
  fs.closeSync(file);
  return { config, mirror, lines: (mib * MIB) / LINE_BYTES };
}

/** As the agent appends. */
function appendLines(mirror: string, from: number, count: number): void {
  let text = '';
  for (let line = from; line < from + count; line++) text += `${lineOf(line)}\n`;
  fs.appendFileSync(mirror, text);
}

const LOG_MIB = Number(process.env['JOBTAIL_VIEW_MIB'] ?? 256);
/** However long the log is. */
const MAX_SERVER_BYTES = 256 * MIB;
const MAX_PAGE_BYTES = 48 * MIB;
const MAX_NODES = 12_000;
const timeout = 240_000 + LOG_MIB * 1_000;

const peakBytesOf = (pid: number) =>
  Number(/^VmHWM:\s+([0-9]+) kB/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

it(`a log of ${LOG_MIB} MiB is opened, searched and followed in little memory`, {
  ...needs('chromium'),
  timeout,
}, async (context) => {
  const { config, mirror, lines } = await stateWithLog(LOG_MIB);
  const server = new Program(['view', '--no-open', '-c', config], { cwd: path.dirname(config) });
  context.onTestFinished(async () => void (await server.kill()));
  const link = await until('the link', () => /^(http:\/\/\S+)\n/m.exec(server.stdout)?.[1]);
  const view = await ViewPage.open(await startBrowser(context), link);
  await view.show('#/job/501/live?file=9001/stdout');
  const pane = await view.pane('stdout of task 9001');
  const row = (number: number) => pane.getByText(lineOf(number), { exact: true });

  // The end is there before anybody has counted to it; then the numbers come.
  await row(lines - 1).waitFor();
  await pane.getByRole('button', { name: `line ${lines}`, exact: true }).waitFor();
  const first = await view.memory();

  await pane.getByRole('button', { name: 'To the beginning' }).click();
  await row(0).waitFor();
  const goto = pane.getByRole('textbox', { name: /^Go to/ });
  const middle = Math.floor(lines / 2);
  await goto.fill(String(middle + 1));
  await goto.press('Enter');
  await row(middle).waitFor();
  await goto.fill(String(middle + 5_001));
  await goto.press('Enter');
  await row(middle + 5_000).waitFor();
  await pane.getByRole('button', { name: 'To the end' }).click();
  await row(lines - 1).waitFor();

  // Read on from a place of the middle, for longer than the page keeps.
  await goto.fill(String(Math.floor(lines / 4) + 1));
  await goto.press('Enter');
  await row(Math.floor(lines / 4)).waitFor();
  for (let times = 0; times < 150; times++) {
    await pane.locator('.rows').evaluate((rows) => {
      rows.scrollTop += 20_000;
    });
    await view.page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  }
  const shown = await view.shownLines(pane);
  expect(shown.map(({ number, text }) => text === lineOf(Number(number) - 1))).not.toContain(false);

  // Everything is counted, wherever it stands.
  await pane.getByRole('button', { name: 'Search' }).click();
  const search = pane.getByRole('searchbox');
  await search.fill('9999 residual');
  const count = Math.floor(lines / 10_000);
  await pane
    .getByRole('status')
    .getByText(new RegExp(`of ${count.toLocaleString('en-GB')}$`))
    .waitFor();
  await search.press('Enter');
  await pane
    .locator('.row.found')
    .getByText(/9999 residual/)
    .waitFor();
  await search.press('Escape');

  // Followed again, it grows at its end.
  await pane.getByRole('button', { name: 'Follow', exact: true }).click();
  for (let round = 0; round < 30; round++) {
    appendLines(mirror, lines + round * 2_000, 2_000);
    await row(lines + round * 2_000 + 1_999).waitFor();
  }
  await pane.getByRole('button', { name: `line ${lines + 60_000}`, exact: true }).waitFor();

  const last = await view.memory();
  expect(last.bytes).toBeLessThan(MAX_PAGE_BYTES);
  expect(last.bytes).toBeLessThan(first.bytes + 16 * MIB);
  expect(last.nodes).toBeLessThan(MAX_NODES);
  expect(peakBytesOf(server.pid)).toBeLessThan(MAX_SERVER_BYTES);
  expect(view.wrongs).toEqual([]);
});
