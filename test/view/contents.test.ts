/** What the view answers over real HTTP: contents, lines, generations, searches, downloads, results, and events. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { FileContent } from '../../src/view/content/content.ts';
import type { LinePlace, Refusal, ResultEntries, SearchLine } from '../../src/view/contract/addresses.ts';
import type { FileLength } from '../../src/view/contract/events.ts';
import { expectCases } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { JOB, STDOUT, TASK, ViewPlace } from '../support/view-place.ts';

const TEXT = 'první řádek\r\n\u001b[31mred\u001b[0m\n<script>alert(1)</script>\n';

/** Names of versions that have numbers of files in them, in the order in which they came. */
class Versions {
  readonly #seen: string[] = [];

  shown(text: string): string {
    return text.replaceAll(/\b[fr]\d+-[\w.-]+/g, (version) => {
      if (!this.#seen.includes(version)) this.#seen.push(version);
      return `V${this.#seen.indexOf(version) + 1}`;
    });
  }

  in(target: string): string {
    return target.replaceAll(/\bV(\d+)\b/g, (_, at) => this.#seen[Number(at) - 1] ?? '');
  }
}

/** Its length comes after all else that changed. */
const MARKER = `${JOB}/${TASK}/progress`;

const ASSETS = path.join(import.meta.dirname, '../../dist/view/page/assets');
const assetOf = (end: string) => fs.readdirSync(ASSETS).find((name) => name.endsWith(end)) ?? '';

/** What changes a view, step by step, and the answers that it then sends. */
async function answersOf(written: string): Promise<string[]> {
  const [first = '', ...steps] = written.split('; ');
  const place = await ViewPlace.serve(first === 'view' ? {} : (JSON.parse(first.slice('view '.length)) as object));
  const versions = new Versions();
  const result: string[] = [];
  // <x*9> is nine times x.
  const argumentsOf = (rest: string) =>
    JSON.parse(
      `[${rest.replaceAll(/<([^<>]+)\*(\d+)>/g, (_, text: string, times) => text.repeat(Number(times)))}]`,
    ) as never[];
  const stores = place.store as unknown as Record<string, Record<string, (...of: readonly unknown[]) => void>>;
  let page: ReturnType<ViewPlace['look']> | undefined;
  /** What is sent after all that was done before. */
  const events = async () => {
    fs.appendFileSync(place.mirrorOf('progress'), '.');
    const { size } = fs.statSync(place.mirrorOf('progress'));
    await page?.until('length', ({ file, bytes }) => file === MARKER && bytes === size);
    return (page?.seen.splice(0) ?? []).filter(([, data]) => (data as Partial<FileLength> | null)?.file !== MARKER);
  };
  const work: Readonly<Record<string, (...of: never[]) => unknown>> = {
    job: (job: JobId) => place.addJob(job),
    write: (file: LiveFileName, text: string, job: JobId = JOB) => place.write(file, text, job),
    rewrite: (text: string) => place.rewrite('stdout', text),
    append: (text: string) => fs.appendFileSync(place.mirrorOf(), text),
    commit: (row: object, task: TaskId = TASK, file: LiveFileName = 'stdout') => place.commit(file, row, JOB, task),
    report: (job: JobId, information: object) => place.report(job, information),
    store: (part: string, name: string, ...of: readonly unknown[]) => stores[part]?.[name]?.(...of),
    look: (query: string) => {
      page = place.look(`${query}&file=${MARKER}`);
    },
    result: (name: string, content?: string | null, row: object = {}) =>
      place.addResult(name, content ?? undefined, row),
    remove: (number: number) => fs.rmSync(`${place.mirrorOf()}.${number}`),
    make: (number: number) => fs.writeFileSync(`${place.mirrorOf()}.${number}`, 'x'.repeat(number)),
  };
  for (const step of steps) {
    const [, word = '', rest = ''] = /^(\w+) ?(.*)$/.exec(step) ?? [];
    if (word === 'events') {
      const shown = (await events()).map(([name, data]) => `  ${name}: ${JSON.stringify(data)}`);
      const same = (line: string) => line.replaceAll(/\b1[78]\d{11}\b/g, 'NOW').replaceAll('\u202e', '\\u202e');
      result.push(`${step}:`, ...shown.map(same));
      continue;
    }
    if (!/^(?:ask|head|page|[A-Z]+)$/.test(word)) {
      expect(Object.keys(work)).toContain(word);
      work[word]?.(...argumentsOf(rest));
      continue;
    }
    const method = /^[A-Z]+$/.test(word) ? word : 'GET';
    const [, sent, target = ''] = /^(\{.*?\})? ?(.*)$/.exec(rest) ?? [];
    const asked = versions
      .in(target)
      .replace('STDOUT', STDOUT)
      .replace(/NAME(\.\w+)/, (_, end: string) => assetOf(end));
    const { status, headers, text } = await place.ask(word === 'page' ? asked : `/api/${asked}`, {
      ...{ method, headers: sent === undefined ? {} : (JSON.parse(sent) as Record<string, string>) },
    });
    const kinds = /head|page/.test(word) ? /^(?:content-(?!length)|x-|cross-|referrer-|cache-|view-|vary)/ : /^view-/;
    const shown = Object.entries(headers).filter(([name]) => kinds.test(name));
    const lines = shown.map(([name, value]) => `  ${name}: ${value}`);
    const { error } = status < 400 || text === '' ? {} : (JSON.parse(text) as Partial<Refusal>);
    const whole = error === undefined ? text : Object.values(error).join('; ');
    const body = word === 'page' && error === undefined ? '' : JSON.stringify(whole).slice(1, -1);
    const bodyLines = body.replaceAll('\\"', '"').replaceAll('\\n', '\n').trimEnd().split('\n');
    // How often progress is reported is a matter of time.
    const isOfTime = (line: string, at: number) =>
      /^\{"searched":/.test(line) || (at > 0 && /"isDone":false/.test(line));
    const told = bodyLines.filter((line, at) => !isOfTime(line, at));
    const more = told.length > 40 ? [`  ... and ${told.length - 3} lines more`] : [];
    const firsts = told.slice(0, more.length > 0 ? 3 : told.length).map((line) => `  ${line.slice(0, 900)}`);
    const all = [...lines, ...firsts, ...more];
    result.push(`${step}: ${status}`, ...all.map((line) => versions.shown(line)));
  }
  return result;
}

it('the view answers each request for contents, searches and results as is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'contents.txt'), answersOf);
});

describe('the lines of a mirror', () => {
  it('have numbers once they are counted, and each can be gone to', async () => {
    const place = await ViewPlace.withJob(TEXT.repeat(100_000));
    const before = await place.ask(`/api/lines?${STDOUT}&from=3000000`);
    expect(before.headers['view-line']).toBeUndefined();
    const found = await place.json<LinePlace>(`/api/place?${STDOUT}&line=123456`);
    expect(found.line).toBe(123_456);
    const at = await place.ask(`/api/lines?${STDOUT}&at=${found.byte}`);
    expect(at.headers['view-line']).toBe('123456');
    expect(await place.json<LinePlace>(`/api/place?${STDOUT}&byte=${found.byte + 3}`)).toEqual(found);
    const last = await place.json<LinePlace>(`/api/place?${STDOUT}&line=999999999`);
    expect(last).toEqual({
      ...{ version: 'g1', line: 300_000 },
      ...{ byte: Buffer.byteLength(TEXT) * 100_000, bytes: Buffer.byteLength(TEXT) * 100_000 },
    });
    // Those of another generation are counted anew.
    place.rewrite('stdout', 'x\n'.repeat(100_000));
    const lines = () => place.ask(`/api/lines?${STDOUT}&from=150000`);
    expect((await lines()).headers['view-line']).toBeUndefined();
    expect((await place.json<LinePlace>(`/api/place?${STDOUT}&byte=150000`)).line).toBe(75_000);
    expect((await lines()).headers['view-line']).toBe('75000');
  });
});

it('a content that is closed is not read, and closed once: its number may be that of another file', () => {
  const file = path.join(temporaryDirectory(), 'file');
  fs.writeFileSync(file, 'text');
  const content = new FileContent(fs.openSync(file, 'r'), 'g1', 'file');
  expect(content.read(0, 4).toString()).toBe('text');
  content.close();
  const other = fs.openSync(file, 'r');
  onTestFinished(() => fs.closeSync(other));
  expect(() => content.read(0, 4)).toThrow('read after it was closed');
  content.close();
  expect(fs.fstatSync(other).size).toBe(4);
});

describe('a search', () => {
  it('in a file that is rewritten meanwhile says so', async () => {
    const place = await ViewPlace.withJob(Buffer.alloc(64 * 1024 * 1024, 'abcdefg\n'));
    const said = await new Promise<SearchLine[]>((resolve) => {
      let text = '';
      const request = place.request(`/api/search?${STDOUT}&text=a`, {}, (response) => {
        place.rewrite('stdout', 'x\n');
        response.on('data', (piece: Buffer) => (text += piece));
        response.on('end', () =>
          resolve(
            text
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as SearchLine),
          ),
        );
      });
      request.on('error', () => resolve([]));
    });
    expect(said.at(-1)).toMatchObject({ done: true, cut: expect.stringContaining('rewritten'), version: 'g2' });
  });
});

describe('a download', () => {
  it('of a file that is rewritten meanwhile breaks off', async () => {
    const place = await ViewPlace.withJob(Buffer.alloc(64 * 1024 * 1024, 'x'));
    const outcome = await new Promise<string>((resolve) => {
      place
        .request(`/api/raw?${STDOUT}`, {}, (response) => {
          place.rewrite('stdout', 'short');
          response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
          response.on('end', () => resolve('whole'));
          response.resume();
        })
        .on('error', () => {});
    });
    expect(outcome).toBe('ECONNRESET');
    expect((await place.ask(`/api/raw?${STDOUT}`)).text).toBe('short');
  });
});

describe('results', () => {
  it('that are very many come in pages', async () => {
    const place = await ViewPlace.withJob('');
    const rows = Array.from({ length: 1_200 }, (_, index) => `many/${String(index).padStart(5, '0')}`);
    place.store.transaction(() => rows.forEach((name) => void place.addResult(name)));
    const found: string[] = [];
    for (let more = true; more; ) {
      const page = await place.json<ResultEntries>(`/api/results?job=501&under=many/&after=${found.at(-1) ?? ''}`);
      found.push(...page.entries.map(({ name }) => name));
      more = page.more;
    }
    expect(found).toEqual(rows);
  });
});
