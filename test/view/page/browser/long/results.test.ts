/** Results on the page: the tree, what is known of each, previews, downloads. */
import fs from 'node:fs';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place, resultsOf } from '../../../../support/e2e-place.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';
import { JOB, ViewPlace } from '../../../../support/view-place.ts';

const CSV = `step,residual\n${Array.from({ length: 300 }, (_, step) => `${step},${1 / (step + 1)}\n`).join('')}`;
/** A picture of one pixel: its header, its only row, its end. */
const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a', 'hex'),
  ...[
    ['IHDR', Buffer.from('00000001000000010802000000', 'hex')],
    ['IDAT', deflateSync(Buffer.from([0, 255, 0, 0]))],
    ['IEND', Buffer.alloc(0)],
  ].map(([name, data]) => chunk(String(name), data as Buffer)),
]);
const PDF = `%PDF-1.1
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>`;

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name), data]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, tail]);
}

function crc32(bytes: Buffer): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

async function jobWithResults(context: Parameters<typeof Place.make>[0]) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const directory = path.dirname(taskOf(job).files.stdout);
  fs.mkdirSync(path.join(directory, 'část 1'));
  const files = { 'table.csv': CSV, 'picture.png': PNG, 'paper.pdf': PDF, 'část 1/měření №1.txt': 'krok 1\nkrok 2\n' };
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(path.join(directory, name), content);
  place.configure(sandbox, { watch: [requestOf(job)], ...(await viewSection()) });
  const agent = await place.run();
  await agent.logs('results synced');
  const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
  await view.show(`#/job/${job.jobId}/results`);
  return { place, job, view };
}

describe('results', needs('chromium'), () => {
  it('are a tree with states, sums, previews and addresses', async (context) => {
    const { job, view } = await jobWithResults(context);
    const { page } = view;
    await page.getByRole('link', { name: 'table.csv' }).click();
    const result = page.getByRole('region', { name: 'Result', exact: true });
    await result.getByText('synced', { exact: true }).waitFor();
    // A table is text, and its numbers can be plotted.
    await result.locator('.row').getByText('step,residual').waitFor();
    await page.keyboard.press('p');
    await result.getByText('300 points').waitFor();

    for (const [name, type] of [
      ['picture.png', 'image/png'],
      ['paper.pdf', 'application/pdf'],
    ] as const) {
      await page.getByRole('link', { name }).click();
      const frame = result.locator('iframe.preview');
      await frame.and(page.getByTitle(new RegExp(`${name}$`))).waitFor();
      // Asked for again: the browser shows headers of its own for a PDF.
      const source = new URL((await frame.getAttribute('src')) ?? '', page.url());
      const answer = await view.context.request.get(source.href);
      expect(answer.status()).toBe(200);
      expect(answer.headers()['content-type']).toBe(type);
      expect(answer.headers()['content-security-policy']).toMatch(/^sandbox; /);
      expect(answer.headers()['x-content-type-options']).toBe('nosniff');
    }

    await page.getByRole('button', { name: 'část 1/' }).click();
    await page.getByRole('link', { name: 'měření №1.txt' }).click();
    await result.locator('.row').getByText('krok 2').waitFor();

    // What is open has its address: it survives a reload.
    await page.reload();
    await result.locator('.row').getByText('krok 2').waitFor();
    const tree = page.getByRole('region', { name: 'Results' });
    expect(await tree.getByRole('link', { name: 'měření №1.txt' }).getAttribute('aria-current')).toBe('true');
    await page.getByRole('link', { name: 'Close' }).click();
    await page.locator('.result').waitFor({ state: 'detached' });
    await view.show(`#/job/${job.jobId}/results?name=${encodeURIComponent('/gone')}`);
    await page.getByText('there is no result of this name').waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('are downloaded byte for byte', async (context) => {
    const { place, job, view } = await jobWithResults(context);
    const { page } = view;
    await page.getByRole('link', { name: 'paper.pdf' }).click();
    const one = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download', exact: true }).click();
    const saved = await (await one).path();
    const [listed = ''] = fs.readdirSync(resultsOf(place, job.jobId));
    expect(fs.readFileSync(saved)).toEqual(
      fs.readFileSync(path.join(resultsOf(place, job.jobId), listed, 'paper.pdf')),
    );
  });
});

it(
  'a result on its way shows its bytes so far, and the tree is not requested again for them',
  needs('chromium'),
  async (context) => {
    const place = await ViewPlace.serve();
    place.addJob();
    place.addResult('/11/big <b>', undefined, { bytes: 4_096 });
    place.addResult('/11/new');
    const now = Date.now();
    const sync = {
      ...{ jobId: JOB, startedAt: now, updatedAt: now, endedAt: null, wanted: 2, wantedBytes: null, done: 0 },
      ...{ bytes: 3_072, way: 'soap', fallback: null },
    };
    const arriving = [
      ['/11/big <b>', 1_024],
      ['/11/new', 2_048],
    ] as const;
    place.store.resultSyncs.save({ ...sync, arriving });
    const view = await ViewPage.open(await startBrowser(context), place.view.link());
    let requests = 0;
    view.page.on('request', (request) => {
      if (request.url().includes('/api/results?')) requests += 1;
    });
    await view.show(`#/job/${JOB}/results`);
    await view.page.getByText('1.0 KiB of 4.0 KiB').waitFor();
    await view.page.getByText('2.0 KiB so far').waitFor();
    const bar = view.page.getByRole('progressbar', { name: '/11/big <b> on its way' });
    expect([await bar.getAttribute('value'), await bar.getAttribute('max')]).toEqual(['1024', '4096']);
    const before = requests;
    for (const [step, text] of ['1.5', '2.0', '3.0'].entries()) {
      const at = { ...sync, updatedAt: now + step, bytes: 4_096 + step };
      place.store.resultSyncs.save({ ...at, arriving: [['/11/big <b>', Number(text) * 1_024]] });
      await view.page.getByText(`${text} KiB of 4.0 KiB`).waitFor();
    }
    expect(before).toBeGreaterThan(0);
    expect(requests).toBe(before);
    place.store.resultSyncs.save({ ...sync, endedAt: now + 1, arriving: [] });
    await bar.waitFor({ state: 'detached' });
    expect(await view.page.getByText('not here yet').count()).toBe(2);
    expect(view.wrongs).toEqual([]);
  },
);
