/** A log of JOBTAIL_VIEW_MIB (256): opened, read at any place, searched and followed, in little memory. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
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

/** A place whose job's stdout has so many MiB of such lines in its mirror; no agent runs. */
async function placeWithLog(place: Place, mib: number) {
  const { sandbox, job, task, mirror } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, `${lineOf(0)}\n`);
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  agent.signal('SIGTERM');
  await agent.ended;
  const file = fs.openSync(mirror, 'w');
  for (let piece = 0, line = 0; piece < mib; piece++) {
    let text = '';
    for (; text.length < MIB; line++) text += `${lineOf(line)}\n`;
    fs.writeSync(file, text);
  }
  fs.closeSync(file);
  return { job, task, mirror, lines: (mib * MIB) / LINE_BYTES };
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
  const place = Place.make(context);
  const { job, task, mirror, lines } = await placeWithLog(place, LOG_MIB);
  const server = place.start(['view', '--no-open']);
  const link = await until('the link', () => /^(http:\/\/\S+)\n/m.exec(server.stdout)?.[1]);
  const view = await ViewPage.open(await startBrowser(context), link);
  await view.show(`#/job/${job.jobId}/live?file=${task.taskId}/stdout`);
  const pane = await view.pane(`stdout of task ${task.taskId}`);
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
