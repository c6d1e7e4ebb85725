/** A live file polled step by step: what the remote file, its service, the mirror and the process become. */
import { isUtf8 } from 'node:buffer';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { passOfDeleted } from '../../../src/agent/pass/complete-pass.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileKey, type LiveFileName, type TaskId } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import type { WatchState } from '../../../src/store/rows.ts';
import { Engine, JOB, ModelDisk, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);
const LINES = Array.from({ length: 20_000 }, (_, line) => `${line} 日本語のログ\n`);

/** Contents that the files of steps name: TEXT is full of characters that the edges of blocks cut. */
const NAMED: Readonly<Record<string, Buffer>> = {
  LOG: Buffer.from('a line of the log\n'.repeat(100)),
  TEXT: Buffer.from(LINES.join('')),
};

/** `"text"`, `b"a byte for each character"`, `NAME`, or `it`, `*` a number, `[from..to]`, added by ` + `. */
function bytesOf(written: string, it: Buffer = Buffer.alloc(0)): Buffer {
  const terms = written.split(' + ').map((term) => {
    const [, kind, text, name = '', from, to, times = '1'] =
      /^(b?)(?:("(?:[^"\\]|\\.)*")|([A-Za-z]+))(?:\[(\d*)\.\.(\d*)\])?(?:\*(\d+))?$/.exec(term) ?? [];
    if (text === undefined && name !== 'it' && NAMED[name] === undefined) throw new Error(`no content: ${term}`);
    const named = name === 'it' ? it : NAMED[name];
    const all = text === undefined ? named : Buffer.from(JSON.parse(text) as string, kind === 'b' ? 'latin1' : 'utf8');
    const part = (all ?? it).subarray(Number(from || 0), to ? Number(to) : undefined);
    return Buffer.concat(Array<Buffer>(Number(times)).fill(part));
  });
  return Buffer.concat(terms);
}

/** Of a long content, its length and how it ends. */
function shown(bytes: Buffer): string {
  const end = bytes.subarray(-40);
  const text = JSON.stringify(isUtf8(end) ? end.toString() : end.toString('latin1'));
  const escaped = text.replaceAll(/[\u007f-\u00ff]/g, (one) => `\\x${one.charCodeAt(0).toString(16)}`);
  return bytes.length > 40 ? `${bytes.length} bytes, at the end ${escaped}` : escaped;
}

interface Options {
  readonly longBacklogBytes?: number;
  readonly files?: readonly LiveFileName[];
  /** A direct way that brings the same files. */
  readonly hasDirect?: boolean;
}

/** Notes its calls. */
class StoryRemote extends ModelRemote {
  readonly noted: string[] = [];
  /** What all downloads fail with. */
  downloadError: JobtailError | undefined;
  listed: readonly string[] | undefined;
  /** By name: what so many downloads of it fail with. */
  readonly failing = new Map<string, { readonly error: JobtailError; left: number }>();
  /** All downloads break off behind so many bytes. */
  breaksAt = Number.POSITIVE_INFINITY;
  /** A file that is there once another one is downloaded. */
  appears: readonly [beside: string, name: string, bytes: Buffer] | undefined;

  override readParts(...call: Parameters<ModelRemote['readParts']>) {
    this.noted.push(`text from ${call[1].map(({ offset }) => offset).join(' and ')}`);
    return super.readParts(...call);
  }

  override async listChangedFiles(...call: Parameters<ModelRemote['listChangedFiles']>) {
    this.noted.push('listing');
    return this.listed ?? (await super.listChangedFiles(...call));
  }

  override downloadFile(...call: Parameters<ModelRemote['downloadFile']>) {
    this.noted.push(call[1]);
    const [, name] = call;
    if (this.appears?.[0] === name) this.files.set(this.appears[1], this.appears[2]);
    const failing = this.failing.get(name);
    if (failing !== undefined && failing.left-- > 0) throw failing.error;
    if (this.downloadError !== undefined) throw this.downloadError;
    let at = 0;
    const sink = async (piece: Buffer) => {
      if (at >= this.breaksAt) throw new JobtailError('interrupted', 'the connection broke');
      await call[2](piece);
      at += piece.length;
    };
    return super.downloadFile(call[0], name, sink, call[3]);
  }
}

class LiveStory {
  readonly remote = new StoryRemote();
  readonly disk = new ModelDisk();
  readonly direct = new StoryRemote();
  readonly directory = temporaryDirectory();
  isDirectOpen = true;
  now = 1_000_000;
  engine: Engine;
  readonly #options: Options;
  #killAt: string | undefined;
  /** Whether all but a byte of the remote file comes and goes with each pause of a pass. */
  #flickering = false;
  #before: Record<string, string> = {};
  /** When the remote file grows, how often, and by what. */
  #growth = { at: '', left: 0, by: Buffer.alloc(0) };

  constructor(options: Options) {
    this.#options = options;
    this.remote.onDownload = () => this.#grow('downloads');
    this.engine = this.start();
    onTestFinished(() => this.engine.kill());
  }

  start(): Engine {
    const { longBacklogBytes, files = ['stdout'], hasDirect = false } = this.#options;
    const { direct } = this;
    const isOpen = () => this.isDirectOpen;
    const downloadFile = (...call: Parameters<ModelRemote['downloadFile']>) => direct.downloadFile(...call);
    this.#killAt = undefined;
    this.engine = new Engine({
      ...{ directory: this.directory, remote: this.remote, disk: this.disk, now: () => this.now },
      ...(longBacklogBytes && { longBacklogBytes }),
      ...(hasDirect && { direct: { isOpen, downloadFile } }),
      checkpoint: (step) => {
        if (this.#killAt === undefined || !step.startsWith(this.#killAt)) return;
        // From now on it takes no step more.
        this.#killAt = '';
        this.engine.kill();
        throw new JobtailError('aborted', 'it was killed');
      },
    });
    this.engine.watch(files.map((file) => ({ ...STDOUT, file })));
    return this.engine;
  }

  get #mirror(): string {
    return this.engine.mirror(STDOUT);
  }

  /** The mirror, its old generations, its row, and what is known of the service. */
  get #state(): Record<string, string> {
    const found: Record<string, string> = {};
    const remote = this.remote.files.get(NAME);
    for (let number = 0; number < 4; number++) {
      const file = number === 0 ? this.#mirror : `${this.#mirror}.${number}`;
      if (!fs.existsSync(file)) continue;
      const bytes = fs.readFileSync(file);
      const isSame = remote?.equals(bytes) ? ', as the file' : '';
      found[number === 0 ? 'mirror' : `mirror.${number}`] = `${shown(bytes)}${number === 0 ? isSame : ''}`;
    }
    const { liveFiles, capabilities } = this.engine.store;
    for (const row of liveFiles.ofJob(JOB)) {
      const { file, position, generation, listedName, verified, error } = row;
      const { ino, mtimeNs } = fs.statSync(this.#mirror, { bigint: true, throwIfNoEntry: false }) ?? {};
      const isKnown = row.inode === String(ino) && row.modifiedNs === String(mtimeNs);
      const read = file !== 'stdout' || isKnown ? '' : ', to be read again';
      const more = [
        read,
        listedName === null ? '' : `, listed as ${listedName}`,
        verified === null ? '' : `, ${verified} verified`,
        error === null ? '' : `, ${error.message}`,
      ];
      if (file === 'stdout' || position > 0)
        found[file] = `${position} bytes of generation ${generation}${more.join('')}`;
      for (const { kind, at, generation: of, reason } of file === 'stdout' ? row.mismatches : [])
        found[`${kind} at ${at}, generation ${of}`] = reason;
    }
    for (const name of ['text-encoding', 'task-shift']) found[name] = capabilities.get(name) ?? '';
    const { length } = this.engine.mismatches;
    found['reported'] = length === 0 ? '' : `${length}, the last ${this.engine.mismatches.at(-1)?.join(' ')}`;
    return found;
  }

  #changed(): string[] {
    const [before, now] = [this.#before, this.#state];
    this.#before = now;
    const gone = Object.keys(before).filter((name) => !(name in now));
    const changed = Object.entries(now).filter(([name, text]) => text !== (before[name] ?? ''));
    const lines = [...gone.map((name) => `  ${name} is gone`), ...changed.map(([name, text]) => `  ${name}: ${text}`)];
    return lines.map((line) => line.replaceAll(this.directory, 'DIR'));
  }

  /** One poll: how it ends, and its calls. */
  async #poll(isFinal: boolean): Promise<string> {
    const { remote } = this;
    const [textBytes, rawBytes] = [remote.textBytes, remote.rawBytes];
    remote.noted.length = 0;
    this.direct.noted.length = 0;
    const end = await this.engine.poll(isFinal).then(
      ({ outcomes, errors }) => {
        const all = [...outcomes, ...[...errors].map(([name, { code }]) => [name, code] as const)];
        return all.map(([name, how]) => `${name === NAME ? '' : `${name} `}${how}`).join(', ');
      },
      (thrown: unknown) => `thrown ${asJobtailError(thrown).code}`,
    );
    expect([remote.held, this.disk.openHandles]).toEqual([0, this.#killAt === '' ? this.disk.openHandles : 0]);
    const bytes = `${remote.textBytes - textBytes} bytes of text, ${remote.rawBytes - rawBytes} raw`;
    const direct = this.direct.noted.length === 0 ? '' : `; direct ${this.direct.noted.join(', ')}`;
    return `${end}; ${remote.noted.join(', ')}; ${bytes}${direct}`;
  }

  #grow(at: string): void {
    if (!this.#growth.at.includes(at) || this.#growth.left-- <= 0) return;
    this.remote.files.set(NAME, Buffer.concat([this.remote.files.get(NAME) ?? Buffer.alloc(0), this.#growth.by]));
  }

  /** A complete pass: how it ends, its pauses, and its calls for whole files. */
  async #pass(step: string, isLast: boolean, pauseMs = 2_000): Promise<string[]> {
    const pauses: number[] = [];
    const onPause = (ms: number) => {
      this.now += ms;
      pauses.push(ms);
      this.#grow('pauses');
      if (this.#flickering && !this.remote.staleSizes.delete(NAME)) this.remote.staleSizes.set(NAME, 1);
    };
    this.remote.noted.length = 0;
    const summary = await this.engine.pass(onPause, isLast, { pauseMs }).catch(asJobtailError);
    if (summary instanceof JobtailError) return [`${step}: thrown ${summary.code}`, ...this.#changed()];
    const { liveFiles, appended, verified, openEnds, results, isListingEmpty } = summary;
    const open = openEnds.map(({ file, reason }) => `, ${file}: ${reason}`).join('');
    const calls = this.remote.noted.filter((call) => !call.startsWith('text'));
    const times = `pauses [${pauses.join(', ')}], requested [${calls.join(', ')}]`;
    const lines = [`${step}: ${appended} bytes, ${verified} of ${liveFiles} verified${open}; ${times}`];
    if (results !== null) {
      const { listed, fetched, changed, failed, bytes } = results;
      const { inFlux, queued } = this.engine.store.results.counts(JOB);
      const left = `${failed} failed, ${inFlux} in flux, ${queued} not there yet${isListingEmpty ? ', nothing listed' : ''}`;
      lines.push(`  results: ${listed} listed, ${fetched} fetched, ${changed} changed, ${bytes} bytes, ${left}`);
    }
    return [...lines, ...this.#changed()];
  }

  /** Polls that end alike are one line. */
  async #polls(step: string, count: number, seconds: number, isFinal = false): Promise<string[]> {
    const lines: string[] = [];
    let last = '';
    for (let poll = 1; poll <= count; poll++) {
      const end = await this.#poll(isFinal);
      const changed = this.#changed();
      if (end !== last || changed.length > 0) lines.push(`${step}, ${poll}: ${end}`, ...changed);
      last = end;
      this.now += seconds * 1_000;
    }
    return lines;
  }

  async #killed(step: string, isBefore: boolean): Promise<string[]> {
    if (isBefore)
      this.disk.beforeStep = async (call) => {
        if (call !== step) return;
        this.engine.kill();
        throw new JobtailError('aborted', 'it was killed');
      };
    else this.#killAt = step;
    await expect(this.engine.poll(), step).rejects.toThrow();
    this.disk.beforeStep = async () => {};
    return [`killed ${isBefore ? 'before' : 'at'} ${step}: ${shown(fs.readFileSync(this.#mirror))}`];
  }

  #edit([how = '', ...rest]: readonly string[]): void {
    const file = this.#mirror;
    const bytes = () => bytesOf(rest.join(' '), fs.readFileSync(file));
    if (how === 'is') fs.writeFileSync(file, bytes());
    else if (how === 'replaced') {
      fs.writeFileSync(`${file}.copy`, bytes());
      fs.renameSync(`${file}.copy`, file);
    } else if (how === 'cut') fs.truncateSync(file, Number(rest[0]));
    else if (how === 'gone') fs.rmSync(file);
    else fs.utimesSync(file, 1, 1);
  }

  async do(step: string): Promise<string[]> {
    const { remote, direct } = this;
    const [word = '', ...rest] = step.split(' ');
    const [first = ''] = rest;
    const number = first === 'none' ? Number.POSITIVE_INFINITY : Number(first);
    if (word === 'poll' || word === 'final') return await this.#polls(step, 1, Number(first || 1), word === 'final');
    if (word === 'polls') return await this.#polls(step, number, Number(rest[1]), rest[2] === 'final');
    if (word === 'pass' || word === 'last') return await this.#pass(step, word === 'last', Number(first || 2_000));
    // The reasons against the job.
    if (word === 'proof') return [`proof: ${unprovenIn(this.engine.store, JOB).join('; ') || 'proven'}`];
    if (word === 'deleted') {
      const { verified, openEnds } = passOfDeleted(JOB, this.engine.store);
      return [`deleted: ${verified} verified, ${openEnds.length} open ends`];
    }
    if (word === 'kill') return await this.#killed(rest[1] ?? '', first === 'before');
    const steps: Readonly<Record<string, () => unknown>> = {
      has: () => remote.files.set(NAME, bytesOf(rest.join(' '), remote.files.get(NAME))),
      file: () => {
        const [taskId, file] = first.split('/') as [TaskId, LiveFileName];
        remote.files.set(keyText({ taskId, file } as LiveFileKey), bytesOf(rest.slice(1).join(' ')));
      },
      direct: () => {
        if (first === 'has') direct.files.set(NAME, bytesOf(rest.slice(1).join(' ')));
        else if (first === 'empty') direct.files.clear();
        else if (first === 'fails') direct.downloadError = new JobtailError(rest[1] as ErrorCode, 'over SSH');
        else this.isDirectOpen = first === 'open';
      },
      grows: () =>
        Object.assign(this.#growth, {
          at: first,
          left: rest[1] === 'none' ? Number.POSITIVE_INFINITY : Number(rest[1]),
          by: bytesOf(rest.slice(2).join(' ')),
        }),
      end: () => this.engine.kill(),
      start: () => this.start(),
      wait: () => (this.now += number * 1_000),
      mirror: () => this.#edit(rest),
      room: () => Object.assign(this.disk, { room: number }),
      flush: () => Object.assign(this.disk, { flushFailures: Number(rest[1] ?? 1) }),
      learned: () => this.engine.store.capabilities.set('text-encoding', first),
      shift: () => this.engine.store.capabilities.set('task-shift', first),
      state: () => this.engine.store.jobs.setState(JOB, first as WatchState),
      // Texts show other bytes than downloads, as a cache of the cluster's file system does.
      texts: () => {
        const shown = bytesOf(rest.join(' ')).toString('latin1');
        remote.decodeWith = (_, offset) => shown.slice(offset);
      },
      // Ways in which a service makes text of bytes, which none is known to do.
      decoder: () => {
        let calls = 0;
        const ways: Readonly<Record<string, ModelRemote['decodeWith']>> = {
          usual: undefined,
          // Of bytes that have no character, it sends U+FFFD.
          holes: (bytes, from) => bytes.toString('latin1', from).replaceAll('\x81', '\ufffd'),
          // From another offset than the first one, it sends something else each time.
          nonsense: (bytes, from) => (from === 0 ? bytes.toString() : `nonsense ${calls++}`),
        };
        remote.decodeWith = ways[first];
      },
      // Its file becomes longer with each request, up to this content.
      longer: () => {
        const content = bytesOf(rest.slice(1).join(' '));
        remote.onPartRequest = () =>
          void remote.files.set(NAME, content.subarray(0, number + (remote.files.get(NAME)?.length ?? 0)));
      },
      flickers: () => (this.#flickering = first === 'yes'),
      breaks: () => Object.assign(remote, { breaksAt: number }),
      poison: () => remote.poisoned.add(NAME),
      raw: () => Object.assign(remote, { rawAccess: first === 'yes' }),
      prefix: () => Object.assign(remote, { prefix: first }),
      stale: () => (first === 'none' ? remote.staleSizes.clear() : remote.staleSizes.set(NAME, number)),
      decodes: () => Object.assign(remote, { decoding: JSON.parse(rest.join(' ')) }),
      sends: () => Object.assign(remote, { maxTextBytes: number, tooLong: rest[1] ?? 'http-status' }),
      hangs: () => Object.assign(remote, { maxRawBytes: number }),
      fails: () => remote.failures.push(new JobtailError(first as ErrorCode, 'it fails')),
      download: () => {
        const hint = rest.slice(1).join(' ');
        const failure = new JobtailError(first as ErrorCode, 'no such file', hint === '' ? {} : { hint });
        remote.downloadError = first === 'works' ? undefined : failure;
      },
      results: () => {
        const order = { tasks: [], files: [], settleAfterMs: null, source: 'command' } as const;
        this.engine.store.jobs.watch({ ...order, jobId: JOB, results: true }, this.now);
      },
      fail: () => {
        const error =
          rest[1] === 'absent'
            ? new JobtailError('fault', 'not yet', { inPlace: 'nothing' })
            : new JobtailError(rest[1] as ErrorCode, 'the service answers 500');
        remote.failing.set(first, { error, left: Number(rest[2]) });
      },
      appears: () => Object.assign(remote, { appears: [first, rest[1], Buffer.from('new')] }),
      gone: () => remote.files.clear(),
      lists: () => Object.assign(remote, { listed: first === 'all' ? undefined : rest }),
      keep: () => fs.cpSync(path.join(this.directory, 'state'), path.join(this.directory, 'kept'), { recursive: true }),
      restore: () => {
        fs.rmSync(path.join(this.directory, 'state'), { recursive: true });
        fs.renameSync(path.join(this.directory, 'kept'), path.join(this.directory, 'state'));
      },
    };
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    steps[word]();
    return [];
  }
}

/** What the steps of a file of cases lead to; the first one may have the options. */
export async function lived(written: string): Promise<string[]> {
  const steps = written.split('; ');
  const options = steps[0]?.startsWith('{') ? (JSON.parse(steps.shift() ?? '') as Options) : {};
  const story = new LiveStory(options);
  const result: string[] = [];
  for (const step of steps) result.push(...(await story.do(step)));
  return result;
}
