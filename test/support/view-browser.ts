/** The page of the view in a real Chromium, Debian's, as a person would use it. */
import { type Browser, type BrowserContext, type CDPSession, chromium, type Locator, type Page } from 'playwright-core';
import type { TestContext } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import type { LiveFileName } from '../../src/job.ts';
import type { Place } from './e2e-place.ts';
import { until } from './e2e-until.ts';
import { JOB, TASK, ViewPlace } from './view-place.ts';

type Registers = Pick<TestContext, 'onTestFinished'>;

/** The longest that a busy machine takes to draw something. */
const PATIENCE_MS = 60_000;
const EXECUTABLE = '/usr/bin/chromium';

export interface BrowserOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

/** A browser of its own, which ends with the test. */
export async function startBrowser({ onTestFinished }: Registers): Promise<Browser> {
  // As root it runs without its sandbox only; it sees nothing but this page.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: [...args, '--disable-dev-shm-usage'] });
  onTestFinished(() => browser.close());
  return browser;
}

/** The section `view` of a configuration, at a free port. */
export async function viewSection(): Promise<{ view: { listen: string } }> {
  return { view: { listen: `127.0.0.1:${await freePort()}` } };
}

/** The link that `agent view` prints. */
export async function linkOf(place: Place): Promise<string> {
  // A command that finds no view serves one of its own.
  await place.programs.findLast(({ args }) => args[0] === 'run')?.logs('view listening');
  return await until('the link of the view', async () => {
    const { stdout, code } = await place.agent('view', '--no-open');
    return code === 0 && stdout.startsWith('http://') ? stdout.trim() : undefined;
  });
}

/** One line of a file as the page shows it. */
interface ShownLine {
  /** From 1, or what stands in place of a number. */
  readonly number: string;
  readonly text: string;
}

export class ViewPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page did that no page may: errors, broken rules of its policy, requests to elsewhere. */
  readonly wrongs: string[] = [];
  /** Where the page is, which may be below a path of somebody else. */
  readonly #base: URL;

  private constructor(context: BrowserContext, page: Page, link: string) {
    this.context = context;
    this.page = page;
    this.#base = new URL('./', link);
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => this.wrongs.push(`error: ${error.stack ?? error.message}`));
    page.on('console', (message) => {
      if (/content.security.policy|refused to/i.test(message.text())) this.wrongs.push(message.text());
    });
    page.on('dialog', (dialog) => {
      this.wrongs.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    context.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      // Its viewer of PDFs the browser has within it.
      if (/^(?:https?|wss?):$/.test(protocol) && origin !== this.#base.origin)
        this.wrongs.push(`request: ${request.url()}`);
    });
  }

  /** Follows the link that `agent view` prints, as a person would. */
  static async open(browser: Browser, link: string, options: BrowserOptions = {}): Promise<ViewPage> {
    const { width = 1280, height = 800, colorScheme = 'light' } = options;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const view = new ViewPage(context, await context.newPage(), link);
    await view.page.goto(link);
    await view.page.locator('.connection.open').waitFor();
    return view;
  }

  /** Another part of the page, by what stands behind `#`. */
  async show(hash: string): Promise<void> {
    await this.page.goto(new URL(hash, this.#base).href);
  }

  /** A pane, once it shows rows. */
  async pane(label: string): Promise<Locator> {
    const pane = this.page.locator(`section.pane[aria-label="${label}"]`);
    await pane.locator('.row').first().waitFor();
    return pane;
  }

  /** What the rows on the screen show. */
  async shownLines(pane: Locator): Promise<ShownLine[]> {
    return await pane.locator('.rows').evaluate((rows) =>
      [...rows.querySelectorAll('.row')].map((row) => ({
        number: row.querySelector('.number')?.textContent ?? '',
        text: row.querySelector('.text')?.textContent ?? '',
      })),
    );
  }

  /** Scrolls from the beginning to the end, as a reader does; what stood there, by the numbers of the lines. */
  async wholeText(pane: Locator): Promise<string> {
    await pane.locator('.rows').focus();
    await this.page.keyboard.press('g');
    const lines = new Map<string, string>();
    await until('the beginning on the page', async () =>
      (await this.shownLines(pane)).some(({ number }) => number === '1'),
    );
    for (;;) {
      for (const { number, text } of await this.shownLines(pane)) lines.set(number, text);
      if (await this.#scrollOn(pane)) continue;
      if (await this.isAtEnd(pane)) break;
    }
    for (const { number, text } of await this.shownLines(pane)) lines.set(number, text);
    return [...lines]
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([, text]) => `${text}\n`)
      .join('');
  }

  /** The last byte of the file is on the screen. */
  async isAtEnd(pane: Locator): Promise<boolean> {
    const place = pane.locator('.overview');
    const isDown = await pane
      .locator('.rows')
      .evaluate((rows) => rows.scrollTop + rows.clientHeight >= rows.scrollHeight - 4);
    return isDown && Number(await place.inputValue()) >= Number(await place.getAttribute('max'));
  }

  /** Used bytes of its heap, after its garbage was collected, and how many nodes its document has. */
  async memory(): Promise<{ bytes: number; nodes: number }> {
    const session: CDPSession = await this.context.newCDPSession(this.page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    const { nodes } = await session.send('Memory.getDOMCounters');
    await session.detach();
    return { bytes: usedSize, nodes };
  }

  /** Half a screen further; false if nothing moved. */
  async #scrollOn(pane: Locator): Promise<boolean> {
    const moved = await pane.locator('.rows').evaluate((rows) => {
      const before = rows.scrollTop;
      rows.scrollTop += rows.clientHeight / 2;
      return rows.scrollTop > before;
    });
    await this.page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    return moved;
  }
}

/** Where the page shows the stdout of the job of `shown`. */
export const STDOUT_HASH = `#/job/${JOB}/live?file=${TASK}/stdout`;

/** A browser at a view of one job with these files. */
export async function shown(
  context: Parameters<typeof startBrowser>[0],
  files: Partial<Record<LiveFileName, string>>,
  fill = (_: ViewPlace) => {},
) {
  const place = await ViewPlace.serve({ agentPid: process.pid });
  place.addJob();
  for (const [file, content] of Object.entries(files)) place.write(file as LiveFileName, content);
  fill(place);
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  const stdout = async () => {
    await view.show(STDOUT_HASH);
    return await view.pane(`stdout of task ${TASK}`);
  };
  return { place, view, page: view.page, stdout };
}
