/** The main paths of the page in Firefox: what other tests show in Chromium. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { WebSocket } from 'undici';
import { expect, it, type TestContext } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { temporaryDirectory } from '../../../../support/temp-directory.ts';
import { lines } from '../../../../support/view-jobs.ts';
import { ViewPlace } from '../../../../support/view-place.ts';

/** Nothing is requested from elsewhere: other hosts are behind a proxy that is not there. */
const PREFERENCES = {
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  // A test reads what the page copied.
  'dom.events.testing.asyncClipboard': true,
};

interface Answer {
  readonly id?: number;
  readonly type: string;
  readonly message?: string;
  readonly result?: unknown;
}

/** Keys without a character, as WebDriver names them. */
const KEYS = { Enter: '\uE007', Escape: '\uE00C' } as const;

class FirefoxPage {
  /** Errors of the page. */
  readonly wrongs: string[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #context = '';

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.id === undefined) this.wrongs.push(String(data));
      else this.#waiting.get(answer.id)?.(answer);
    });
  }

  /** A Firefox of its own, which ends with the test, at an address. */
  static async open({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, link: string): Promise<FirefoxPage> {
    const profile = temporaryDirectory();
    const lines = Object.entries(PREFERENCES).map(
      ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`,
    );
    fs.writeFileSync(path.join(profile, 'user.js'), lines.join(''));
    const firefox = spawn(
      'firefox-esr',
      ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const over = once(firefox, 'exit');
    onTestFinished(async () => {
      firefox.kill();
      await over;
    });
    let said = '';
    firefox.stderr.on('data', (text) => {
      said += String(text);
    });
    const address = await until('Firefox', () => /BiDi listening on (ws:\S+)/.exec(said)?.[1]);
    const socket = new WebSocket(`${address}/session`);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    const page = new FirefoxPage(socket);
    await page.#send('session.new', { capabilities: {} });
    await page.#send('session.subscribe', { events: ['log.entryAdded'] });
    const { contexts } = (await page.#send('browsingContext.getTree', {})) as { contexts: { context: string }[] };
    page.#context = contexts[0]?.context ?? '';
    await page.show(link);
    return page;
  }

  async show(url: string): Promise<void> {
    await this.#send('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  /** The value of an expression in the page, which may be a promise. */
  async evaluate<T>(expression: string): Promise<T> {
    const found = (await this.#send('script.evaluate', {
      expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`,
      target: { context: this.#context },
      awaitPromise: true,
    })) as { type: string; result?: { value: string } };
    if (found.result === undefined) throw new Error(`${expression}: ${JSON.stringify(found)}`);
    return JSON.parse(found.result.value) as T;
  }

  /** Presses keys, one after the other. */
  async press(...keys: readonly string[]): Promise<void> {
    const values = keys.map((key) => KEYS[key as keyof typeof KEYS] ?? key);
    const actions = values.flatMap((value) => [
      { type: 'keyDown', value },
      { type: 'keyUp', value },
    ]);
    await this.#act({ type: 'key', id: 'keys', actions });
  }

  /** Turns the wheel over the middle of an element. */
  async wheel(selector: string, deltaY: number): Promise<void> {
    const middle = `(({ left, top, width, height }) => [left + width / 2, top + height / 2])`;
    const box = `document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect()`;
    const [x = 0, y = 0] = (await this.evaluate<number[]>(`${middle}(${box})`)).map(Math.round);
    await this.#act({ type: 'wheel', id: 'wheel', actions: [{ type: 'scroll', x, y, deltaX: 0, deltaY }] });
  }

  async #act(source: object): Promise<void> {
    await this.#send('input.performActions', { context: this.#context, actions: [source] });
  }

  async #send(method: string, params: object): Promise<unknown> {
    const id = this.#waiting.size + 1;
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { type, message, result } = await answer;
    if (type !== 'success') throw new Error(`${method}: ${message}`);
    return result;
  }
}

const ROWS = `[...document.querySelectorAll('.rows .text')].map((text) => text.textContent)`;

it('the page in Firefox opens, follows, scrolls, copies and searches', needs('firefox-esr'), async (context) => {
  const place = await ViewPlace.withJob(lines(0, 5_000));
  const page = await FirefoxPage.open(context, place.view.link());
  const rows = () => page.evaluate<string[]>(ROWS);
  const shown = (what: string, text: string) => until(what, async () => (await rows()).includes(text.trimEnd()));

  await until('the job', () => page.evaluate<boolean>(`document.querySelector('.job-link') !== null`));
  await page.evaluate(`void document.querySelector('.job-link').click()`);
  await shown('the end of the file', lines(4_999, 1));
  fs.appendFileSync(place.mirrorOf(), lines(5_000, 3));
  await shown('what was appended', lines(5_002, 1));

  await page.wheel('.rows', -2_000);
  await until('a place before', async () => !(await rows()).includes(lines(5_002, 1).trimEnd()));
  await page.press('g');
  await shown('the beginning', lines(0, 1));
  await page.evaluate(`void document.querySelector('.number').click()`);
  await until('the selection', () => page.evaluate<boolean>(`document.querySelector('.row.selected') !== null`));
  await page.press('c');
  const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
  await until('the copy', async () => (await copied()) === lines(0, 1));

  await page.press('/', ...'4321 ');
  await shown('the match', lines(4_321, 1));
  await until('its mark', async () => {
    const marks = await page.evaluate<string[]>(`[...(CSS.highlights.get('match') ?? [])].map(String)`);
    return marks.join() === '4321 ';
  });
  expect(page.wrongs).toEqual([]);
});
