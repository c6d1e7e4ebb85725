/** One live file, with a source whose responses the test gives: what each poll requests, and what it leads to. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type {
  BytesRequest,
  LiveBytes,
  LiveSource,
  RawOutcome,
  WhatFollows,
} from '../../../src/agent/ports/live-source.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileName } from '../../../src/job.ts';
import type { LiveFileRow } from '../../../src/store/rows.ts';
import { JOB, ModelDisk, polledPlace, STDOUT } from '../../support/engine.ts';
import { expanded, expectCases } from '../../support/errors.ts';

const NAME = keyText(STDOUT);

/** What a response shows of the file. */
interface Shown {
  /** The whole file, as far as the response shows it. */
  readonly text?: string;
  readonly from?: number;
  readonly follows?: WhatFollows;
  readonly isEndCertain?: boolean;
  readonly sameness?: string | undefined;
  readonly relativePath?: string;
  /** The raw file, or why there is none. */
  readonly raw?: string | Buffer | { readonly reason: string };
  readonly listedName?: string;
  /** Its bytes, with those that it does not show. */
  readonly size?: number;
}

/** A response of a source of live bytes. */
function responseOf(shown: Shown, onDownload: () => void): LiveBytes {
  const { text = '', from = 0, follows = 'nothing', isEndCertain = true, sameness, listedName } = shown;
  const { relativePath = '/stdout.txt', raw = { reason: 'it is refused' } } = shown;
  const bytes = Buffer.from(text);
  let at = from;
  const download = async (begin: () => (piece: Buffer) => Promise<void>): Promise<RawOutcome> => {
    onDownload();
    if (typeof raw === 'object' && 'reason' in raw) return { isThere: false, reason: raw.reason };
    await begin()(Buffer.from(raw));
    return { isThere: true, isListed: false, listedName };
  };
  return {
    ...{ from, isRaw: false, isEndCertain, relativePath, size: shown.size ?? bytes.length - from, sameness },
    raw: { download },
    whatFollows: async () => follows,
    next: async (max) => {
      const next = bytes.subarray(at, at + max);
      at += next.length;
      return next;
    },
    release: async () => {},
  };
}

class SourceStory {
  /** What exists, by `keyText`. */
  readonly #files = new Map<string, string | JobtailError>([[NAME, 'a line\n']]);
  readonly #disk = new ModelDisk();
  readonly #place: ReturnType<typeof polledPlace>;
  readonly #counts = { given: 0, released: 0, downloads: 0, opened: 0, transactions: 0 };
  #shown: Shown = {};
  #showsOverlap = true;
  #releaseFails = false;
  #isStoreBroken = false;
  #requests: string[] = [];
  #steps: string[] = [];
  #stop = new AbortController();
  #before: Record<string, string> = {};

  constructor(files: readonly LiveFileName[]) {
    const source: LiveSource = {
      bytes: async (wanted, _, isFirst) => {
        this.#requests.push(...wanted.map((request) => shownOf(request, isFirst)));
        for (const step of this.#steps.splice(0)) this.#do(step);
        const found = wanted.flatMap((request) => {
          const file = this.#files.get(keyText(request));
          return file === undefined ? [] : [[keyText(request), this.#responseTo(request, file)] as const];
        });
        return { files: new Map(found), refused: 1 };
      },
      overlapStart: ({ length }) => (this.#showsOverlap ? 0 : length),
    };
    const open = this.#disk.open.bind(this.#disk);
    this.#disk.open = (...call) => {
      this.#counts.opened += 1;
      return open(...call);
    };
    this.#place = polledPlace({ disk: this.#disk, source, keys: files.map((file) => ({ ...STDOUT, file })) });
    const { store } = this.#place.engine;
    const transaction = store.transaction.bind(store);
    store.transaction = (work) => {
      this.#counts.transactions += 1;
      return transaction(work);
    };
    const save = store.liveFiles.save.bind(store.liveFiles);
    store.liveFiles.save = (row) => {
      if (this.#isStoreBroken && row.file === 'stdout') throw new JobtailError('store', 'the state cannot be written');
      save(row);
    };
  }

  #responseTo({ from }: BytesRequest, file: string | JobtailError) {
    if (typeof file !== 'string') return file;
    const { follows = 'nothing' } = this.#shown;
    this.#counts.given += 1;
    const sameness = file + (follows === 'nothing' ? '' : follows);
    const { sameness: given = sameness, ...more } = this.#shown;
    const shown = { from, text: file, ...more, sameness: given === 'NONE' ? undefined : given };
    const release = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      this.#counts.released += 1;
      if (this.#releaseFails) throw new Error('it cannot be released');
    };
    return { ...responseOf(shown, () => (this.#counts.downloads += 1)), release };
  }

  /** Rows and mirrors that changed. */
  #changed(): string[] {
    const { engine } = this.#place;
    const now: Record<string, string> = {};
    for (const row of engine.store.liveFiles.ofJob(JOB)) {
      const { file, position, generation, relativePath, listedName, rotation, grownAt, error } = row;
      const mirror = engine.mirror(row);
      const bytes = fs.existsSync(mirror) ? fs.readFileSync(mirror, 'latin1') : undefined;
      const long = `${bytes?.length} bytes`;
      const text = bytes === undefined ? 'no mirror' : bytes.length > 99 ? long : JSON.stringify(bytes);
      const more = [
        relativePath,
        listedName,
        rotation,
        grownAt === null ? '' : `grown at ${(grownAt - 1_000_000) / 1_000}`,
        error && `${error.code}: ${error.message.replace(path.dirname(mirror), 'DIR')}`,
      ].filter(Boolean);
      now[file] = `${text}, ${position} bytes of generation ${generation}${more.map((one) => `, ${one}`).join('')}`;
    }
    const changed = Object.entries(now).filter(([file, text]) => text !== this.#before[file]);
    this.#before = now;
    return changed.map(([file, text]) => `  ${file}: ${text}`);
  }

  /** How a poll ends, what it requests and whether it opens a mirror, and what changes by it. */
  async #poll(isFinal: boolean): Promise<string[]> {
    const { engine } = this.#place;
    this.#requests = [];
    Object.assign(this.#counts, { downloads: 0, opened: 0, transactions: 0 });
    const end = await engine.poll(isFinal, this.#stop.signal).then(
      ({ outcomes, errors }) => [...outcomes.values(), ...[...errors.values()].map(({ code }) => code)].join(', '),
      (thrown: unknown) => `thrown ${asJobtailError(thrown).code}`,
    );
    const { released, given, downloads, opened, transactions } = this.#counts;
    expect([released, this.#disk.openHandles], 'responses released, and mirrors not closed').toEqual([given, 0]);
    const more = [
      this.#requests.length === 0 ? 'no request' : this.#requests.join(', '),
      downloads > 0 ? `${downloads} downloads` : '',
      opened > 0 ? 'opened' : 'not opened',
      transactions > 0 ? '' : 'nothing stored',
    ];
    return [`${end}; ${more.filter((one) => one !== '').join('; ')}`, ...this.#changed()];
  }

  /** Of polls that end alike, the first is shown. */
  async #polls(step: string, count: number, everyMs: number, isFinal: boolean): Promise<string[]> {
    const lines: string[] = [];
    let last = '';
    for (let poll = 1; poll <= count; poll++) {
      this.#place.time.now += everyMs;
      const shown = await this.#poll(isFinal);
      if (shown.join() !== last) lines.push(`${step}${count > 1 ? `, ${poll}` : ''}: ${shown[0]}`, ...shown.slice(1));
      last = shown.join();
    }
    return lines;
  }

  #do(step: string): void {
    const [word = '', first = '', ...rest] = step.split(' ');
    const text = step.slice(word.length + 1);
    const { engine } = this.#place;
    const mirror = engine.mirror(STDOUT);
    const fileOf = (written: string) =>
      written.startsWith('! ')
        ? new JobtailError(written.split(' ')[1] as ErrorCode, 'it is broken')
        : (JSON.parse(written) as string);
    const steps: Readonly<Record<string, () => unknown>> = {
      has: () => (text === 'none' ? this.#files.delete(NAME) : this.#files.set(NAME, fileOf(text))),
      other: () => this.#files.set(keyText({ ...STDOUT, file: first as 'stderr' }), fileOf(rest.join(' '))),
      shows: () => (this.#shown = JSON.parse(text) as Shown),
      overlap: () => (this.#showsOverlap = first === 'yes'),
      mirror: () => fs.appendFileSync(mirror, 'junk'),
      write: () => fs.writeFileSync(mirror, JSON.parse(text) as string),
      junk: () => fs.appendFileSync(engine.mirror({ ...STDOUT, file: 'stderr' }), 'junk'),
      empty: () => fs.truncateSync(mirror),
      once: () => this.#steps.push(text),
      row: () => {
        const [row] = engine.store.liveFiles.ofJob(JOB);
        engine.store.liveFiles.save({ ...row, ...(JSON.parse(text) as object) } as LiveFileRow);
      },
      /** Each request finds another file, which differs earlier. */
      differs: () => {
        const same = Number(first);
        this.#files.set(NAME, `${'another'.slice(0, same)}X`);
        this.#steps.push(`differs ${same - 1}`);
      },
      disk: () =>
        (this.#disk.beforeStep = async (step) => {
          if (first === 'fails' && /write|truncate|datasync/.test(step))
            throw Object.assign(new Error('EIO: write'), { code: 'EIO', syscall: 'write' });
        }),
      release: () => (this.#releaseFails = true),
      stop: () => this.#stop.abort(),
      store: () => (this.#isStoreBroken = first === 'fails'),
    };
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    steps[word]();
  }

  async play(step: string): Promise<string[]> {
    const [word = '', first = '0', every = '0'] = step.split(' ');
    if (word === 'poll' || word === 'final') return await this.#polls(step, 1, 1_000 * Number(first), word === 'final');
    if (word === 'polls') return await this.#polls(step, Number(first), 1_000 * Number(every), false);
    this.#do(expanded(step));
    return [];
  }
}

function shownOf({ from, known, isThorough, sameAs, listedName }: BytesRequest, isFirst: boolean): string {
  const more = [
    isThorough && ' thoroughly',
    sameAs !== undefined && ` unless it is as ${JSON.stringify(sameAs)}`,
    listedName && ` of ${listedName}`,
    !isFirst && ' again',
  ];
  return `from ${from} with ${known}${more.filter(Boolean).join('')}`;
}

it('each poll requests, opens and stores what is written, by the responses of its source', async () => {
  await expectCases(path.join(import.meta.dirname, 'file-poll.txt'), async (written) => {
    const steps = written.split('; ');
    const story = new SourceStory(steps[0]?.startsWith('[') ? JSON.parse(steps.shift() ?? '') : ['stdout']);
    const result: string[] = [];
    for (const step of steps) result.push(...(await story.play(step)));
    return result;
  });
});
