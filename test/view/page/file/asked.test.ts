/** The search in a file that grows, and its numbers: what they request and show, of a server in memory. */
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { effect, signal } from '@preact/signals';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendBy } from '../../../../src/view/page/api.ts';
import { Numbers } from '../../../../src/view/page/file/numbers.ts';
import { Search } from '../../../../src/view/page/file/search.ts';
import { expectCases, stepOf } from '../../../support/errors.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const CONTENT = () => ({ job: '1', task: '2', file: 'stdout' }) as const;

/** A content, its server, a search and numbers: the steps of asked.txt. */
class Story {
  content = '';
  readonly #bytes = signal(0);
  readonly #refusals: number[] = [];
  /** How many of all that it finds a server lists, and where it would find a regular expression. */
  #listed = Number.POSITIVE_INFINITY;
  #places: [number, number][] | undefined;
  /** The part of an address whose answers wait. */
  #held: string | undefined;
  #release = () => {};
  #arrival = Promise.resolve();
  /** Lines after which the next answer breaks off. */
  #sent: number | undefined;
  search = new Search(CONTENT);
  #numbers: Numbers | undefined;
  /** What was requested, and problems that were shown, since the last step. */
  readonly seen: string[] = [];

  constructor() {
    this.search.found.subscribe((found) => void (found?.problem && this.seen.push(found.problem)));
  }

  async send(to: string, aborted: AbortSignal | null): Promise<Response> {
    const [name = '', parameters] = to.replace('api/', '').split('?');
    const query = new URLSearchParams(parameters);
    for (const same of ['job', 'task', 'file', 'case']) query.delete(same);
    this.seen.push(`${name} ${[...query].map(([key, value]) => `${key} ${value}`).join(', ')}`);
    const status = this.#refusals.shift();
    if (status !== undefined) {
      const headers: HeadersInit = status === 400 ? {} : { 'retry-after': '3' };
      return Response.json({ error: { message: `refused by ${status}` } }, { status, headers });
    }
    const lines = name === 'search' ? this.#matches(query) : this.#rows(Number(query.get('from') ?? 0));
    if (this.#held !== undefined && to.includes(this.#held)) await this.#arrival;
    aborted?.throwIfAborted();
    const pieces = lines.slice(0, this.#sent).map((line) => Buffer.from(`${JSON.stringify(line)}\n`));
    const breaks = this.#sent !== undefined;
    this.#sent = undefined;
    const pull = (body: ReadableStreamDefaultController) => {
      const next = pieces.shift();
      if (next !== undefined) body.enqueue(next);
      else if (breaks) body.error(new TypeError('network error'));
      else body.close();
    };
    return new Response(new ReadableStream({ pull }));
  }

  /** As the real server finds a text. */
  #matches(query: URLSearchParams): object[] {
    const { content } = this;
    const text = query.get('text') ?? '';
    const all: [number, number][] = [];
    for (let byte = content.indexOf(text, Number(query.get('from'))); byte >= 0; ) {
      all.push([byte, text.length]);
      byte = content.indexOf(text, byte + text.length);
    }
    const at = this.#places ?? all;
    const progress = { searched: content.length, of: content.length, count: at.length };
    const found = at.length === 0 ? [] : [{ at: at.slice(0, this.#listed) }];
    return [...found, ...(query.has('max') ? [] : [progress]), { done: true, count: at.length, version: 'one' }];
  }

  /** Lines of seven bytes, in two packets; of each fourth one, only the number is sent. */
  #rows(from: number): object[] {
    const lines = this.content.slice(from).match(/[^\n]*\n/g) ?? [];
    const all = lines.flatMap((_, at) => (at % 4 === 3 ? [] : [at]));
    const packets = [all.slice(0, 2), all.slice(2)].map((index) => ({
      ...{ index, at: index.map((at) => from + 7 * at) },
      rows: index.map((at) => [Number(lines[at]?.slice(2))]),
    }));
    return [{ columns: ['x'] }, ...packets, { done: true, to: this.content.length, count: lines.length }];
  }

  do(step: string): void {
    const { search } = this;
    const grow = (text: string) => {
      this.content += text;
    };
    stepOf(step, {
      content: (text: string) => {
        this.content = text;
      },
      list: (count: number) => {
        this.#listed = count;
      },
      places: (...all: [number, number][]) => {
        this.#places = all;
      },
      refuse: (...statuses: number[]) => this.#refusals.push(...statuses),
      breaks: (after: number) => {
        this.#sent = after;
      },
      hold: (part: string) => {
        this.#held = part;
        this.#arrival = new Promise((resolve) => (this.#release = resolve));
      },
      release: () => {
        this.#held = undefined;
        this.#release();
      },
      search: (text: string, near = 0, { isBack = false, ...query }: { isBack?: boolean } = {}) =>
        search.start({ text, matchesCase: true, regex: false, ...query }, near, isBack),
      next: (from = 0) => void search.step(false, from).catch(() => {}),
      back: (from = 0) => void search.step(true, from).catch(() => {}),
      /** As the page does: what came is searched once all before it is. */
      follow: () =>
        effect(() => {
          if (search.found.value?.isDone === true) search.grow(this.#bytes.value);
        }),
      append: grow,
      grow: (text: string) => {
        grow(text);
        this.#bytes.value = this.content.length;
        search.grow(this.content.length);
        void this.#numbers?.grow();
      },
      numbers: () => {
        this.#numbers = new Numbers(CONTENT, 0);
        void this.#numbers.grow();
      },
      close: () => {
        search.stop();
        this.#numbers?.close();
      },
      wait: (ms: number) => vi.advanceTimersByTime(ms),
      /** What is marked in a row that is shown, of these bytes of the content. */
      mark: (shown: string, start = 0, end = this.content.length) => {
        const bytes = Buffer.from(start === 0 && this.content === '' ? shown : this.content.slice(start, end));
        this.seen.push(
          `marked ${JSON.stringify(shown.match(search.needleIn({ bytes, shownFrom: start }) ?? /never/))}`,
        );
      },
    });
  }

  get shown(): string {
    const { place } = this.search;
    const [found, current] = [this.search.found.value, this.search.current.value];
    const made = this.seen.splice(0).map((each) => `[${each}]`);
    if (this.#numbers !== undefined) {
      const { names, at, columns, problem } = this.#numbers.series.value;
      made.push(
        `${names.join(' ')} ${JSON.stringify(columns)} at ${at.join(' ')}`,
        ...(problem === undefined ? [] : [problem]),
      );
    }
    if (current !== undefined) made.push(`at ${current.join('+')}${place === undefined ? '' : `, ${place + 1}`}`);
    if (found !== undefined)
      made.push(`of ${found.count} in ${found.searched}/${found.of}${found.isDone ? '' : '...'}`);
    const timers = vi.getTimerCount();
    return [...made, ...(timers > 0 ? [`${timers} waiting`] : [])].join(' ');
  }
}

it('the search and the numbers of a file request and show after each step what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'asked.txt'), async (written) => {
    const story = new Story();
    sendBy((to, aborted) => story.send(to, aborted));
    const result: string[] = [];
    for (const step of written.split('; ')) {
      story.do(step.replace(/^& /, ''));
      const isHeld = step.startsWith('& ');
      // A text is searched for once no more is typed.
      if (/^search/.test(step)) vi.advanceTimersByTime(150);
      for (let turns = 0; turns < (isHeld ? 0 : 30); turns++) await turn();
      const { shown } = story;
      if (!isHeld && shown !== '') result.push(`${step}: ${shown}`);
    }
    story.do('close');
    expect(vi.getTimerCount()).toBe(0);
    return result;
  });
});
