/** What the view answers over real HTTP: contents, lines, generations, searches, downloads, results, and events. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { FileContent } from '../../src/view/content/content.ts';
import type { ProvenHello, Refusal, ResultEntries } from '../../src/view/contract/addresses.ts';
import type { FileLength } from '../../src/view/contract/events.ts';
import { newNonce, seal } from '../../src/view/proof.ts';
import { tokenFileOf } from '../../src/view/token.ts';
import { expanded, expectCases, stepOf } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { JOB, STDOUT, TASK, ViewPlace } from '../support/view-place.ts';

const NONCE = '[A-Za-z0-9_-]{43}';
/** Versions that have numbers of files in them, tickets, passes, and what a session shows and keeps. */
const SECRETS = new RegExp(String.raw`\b[fr]\d+-[\w.-]+|(?:\d+\.)?${NONCE}\.${NONCE}|(?<=pass=)${NONCE}`, 'g');

/** The names of these, in the order in which they came. */
class Versions {
  readonly #seen: string[] = [];

  shown(text: string): string {
    return text.replaceAll(SECRETS, (version) => {
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

/** The view again, where it was, or at another port. */
async function startAgain(place: ViewPlace, port = place.view.port): Promise<void> {
  await place.view.close();
  Object.assign(place.settings, { listen: { host: '127.0.0.1', port } });
  await place.start();
}

/** How the page of a session goes on by its key after a restart, as page/session.ts does it. */
async function goOn(place: ViewPlace, key: string): Promise<string> {
  const [number = '', secret = ''] = key.split('.');
  const nonce = newNonce();
  const headers = { authorization: null };
  const { text } = await place.ask(`/api/hello?nonce=${nonce}&session=${number}`, { headers });
  const { start, proof } = JSON.parse(text) as ProvenHello;
  const access = seal(secret, 'access', start);
  expect(text, 'no answer has what opens the view').not.toContain(access);
  return `${proof === seal(secret, 'proof', start, nonce) ? 'it is' : 'it is not'} the view: ${number}.${access}`;
}

/** What changes a view, step by step, and the answers that it then sends. */
async function answersOf(written: string): Promise<string[]> {
  const [first = '', ...steps] = written.split('; ');
  const place = await ViewPlace.serve(first === 'view' ? {} : (JSON.parse(first.slice('view '.length)) as object));
  const versions = new Versions();
  const result: string[] = [];
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
    restart: () => startAgain(place),
    move: () => startAgain(place, 0),
    forget: () => fs.rmSync(tokenFileOf(place.settings)),
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
    if (word === 'link' || word === 'proof') {
      const shown = word === 'link' ? place.view.link() : await goOn(place, versions.in(rest));
      result.push(`${step}: ${versions.shown(shown.replace(/:\d+\//, '/'))}`);
      continue;
    }
    if (!/^(?:ask|head|page|[A-Z]+)$/.test(word)) {
      await stepOf(step, work);
      continue;
    }
    const method = /^[A-Z]+$/.test(word) ? word : 'GET';
    const [, sent, target = ''] = /^(\{.*?\})? ?(.*)$/.exec(rest) ?? [];
    const asked = versions
      .in(expanded(target))
      .replace('STDOUT', STDOUT)
      .replace(/NAME(\.\w+)/, (_, end: string) => assetOf(end));
    const { status, headers, text } = await place.ask(word === 'page' ? asked : `/api/${asked}`, {
      ...{ method, headers: JSON.parse(versions.in(sent ?? '{}')) as Record<string, string | null> },
    });
    const kinds = /head|page/.test(word)
      ? /^(?:content-(?!length)|x-|cross-|referrer-|cache-|view-|vary|access-)/
      : /^view-/;
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

it.each([
  ['a search', 'search', /"done":true,.*"version":"g2".*rewritten/],
  ['a download', 'raw', /ECONNRESET$/],
])('%s in a file that is rewritten meanwhile ends, and no answer mixes two generations', async (_, route, expected) => {
  const place = await ViewPlace.withJob(Buffer.alloc(64 * 1024 * 1024, 'abcdefg\n'));
  const said = await new Promise<string>((resolve) => {
    let text = '';
    place
      .request(`/api/${route}?${STDOUT}&text=a`, {}, (response) => {
        place.rewrite('stdout', 'short');
        response.on('data', (piece: Buffer) => (text = `${text}${piece}`.slice(-500)));
        response.on('error', (error: NodeJS.ErrnoException) => resolve(`${text}${error.code}`));
        response.on('end', () => resolve(text));
      })
      .on('error', () => {});
  });
  expect(said).toMatch(expected);
  expect((await place.ask(`/api/raw?${STDOUT}`)).text).toBe('short');
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
