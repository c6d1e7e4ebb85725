/** The world of the model test: remote files with their history, the engine that follows them, and what must hold. */
import fs from 'node:fs';
import path from 'node:path';
import type { Polled } from '../../../../src/agent/poll/poll.ts';
import { asJobtailError, JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { DECODING_CAPABILITY } from '../../../../src/remote/text/decoding.ts';
import type { LiveFileRow } from '../../../../src/store/rows.ts';
import { Engine, JOB, ModelDisk } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { memoryDirectory } from '../../../support/temp-directory.ts';
import type { Action, Change, Decoding, Setting } from './actions.ts';
import { ALL_ATOMS, bytesOf, type Piece } from './content.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Two tasks with two files each; the paths that the service gives are the same for both tasks. */
const KEYS = ['9001', '9002'].flatMap((taskId) =>
  (['stdout', 'progress'] as const).map((file): LiveFileKey => ({ taskId: taskId as TaskId, file })),
);
/** A stale size is shown for less than the five seconds that the engine wants to see it. */
const STALE_MS = 4_000;

/** So many polls, so far apart, are enough for every mirror (docs/guarantees.md). */
const POLLS_TO_BE_EQUAL = 10;
const BETWEEN_POLLS_MS = 15_000;
const MAX_PAUSE_MS = 30 * 60_000;

/** A remote file as the model knows it. */
interface Subject {
  readonly key: LiveFileKey;
  readonly name: string;
  /** All it ever held: one content a generation, the last one grows. */
  readonly generations: Buffer[];
  letter: string;
  /** Bytes that the job has yet to write. */
  pending: Buffer;
  /** 0 once a poll has seen the file as it is again: two stale sizes in a row, with no other sight between, are one. */
  staleUntil: number;
  /** Its mirror was edited, and not polled with success since. */
  unsettled: boolean;
  /** Its mirror was edited, or the state lost, so its generations are no longer those of the remote file. */
  edited: boolean;
  /** The committed position in each generation of the mirror, as last seen. */
  readonly promised: Map<number, number>;
}

export class World {
  readonly #setting: Setting;
  readonly #directory: string;
  readonly #state: string;
  readonly #remote = new ModelRemote();
  readonly #disk = new ModelDisk();
  readonly #subjects: Subject[];
  #engine: Engine;
  #now = 1_700_000_000_000;
  #letters = 0;
  #edits = 0;
  #hasFailed = false;
  #race: { calls: number; change: Change } | undefined;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-model-'));
    this.#state = path.join(this.#directory, 'state');
    this.#remote.rawAccess = setting.rawAccess;
    this.#decodeAs(setting.decoding);
    this.#remote.beforeCall = () => this.#beforeCall();
    this.#subjects = KEYS.slice(0, setting.alone ? 1 : KEYS.length).map((key) => ({
      key,
      name: keyText(key),
      generations: [],
      letter: '',
      pending: Buffer.alloc(0),
      staleUntil: 0,
      unsettled: false,
      edited: false,
      promised: new Map(),
    }));
    this.#engine = this.#start();
    const learned = learnedBefore(setting);
    if (learned === undefined) return;
    this.#engine.store.capabilities.set(DECODING_CAPABILITY, learned);
    this.#engine.kill();
    this.#engine = this.#start();
  }

  async act(action: Action): Promise<void> {
    const remote = this.#remote;
    const acts: { readonly [Name in Action['do']]: (of: Extract<Action, { do: Name }>) => unknown } = {
      append: (change) => this.#append(change),
      truncate: (change) => this.#truncate(change),
      rewrite: (change) => this.#rewrite(change),
      delete: ({ file }) => remote.files.delete(this.#subject(file).name),
      work: ({ work }) => this.#work(work),
      wait: ({ ms }) => (this.#now += ms),
      stale: ({ file, share }) => this.#stale(this.#subject(file), share),
      fault: ({ codes }) =>
        remote.failures.push(...codes.map((code) => new JobtailError(code, 'a fault of the model'))),
      poison: ({ file }) => remote.poisoned.add(this.#subject(file).name),
      race: (race) => {
        this.#race = { ...race };
      },
      'raw-access': ({ given }) => Object.assign(remote, { rawAccess: given }),
      full: ({ room }) => Object.assign(this.#disk, { room }),
      edit: (edit) => this.#edit(edit),
      'copy-state': () => fs.cpSync(this.#state, `${this.#state}-copy`, { recursive: true }),
      'lose-state': () => {
        this.#engine.kill();
        fs.rmSync(this.#state, { recursive: true });
        if (fs.existsSync(`${this.#state}-copy`)) fs.renameSync(`${this.#state}-copy`, this.#state);
        for (const subject of this.#subjects) this.#forgetPromises(subject);
        this.#engine = this.#start();
      },
      upgrade: ({ to }) => this.#decodeAs(to),
      calm: () => this.#calm(),
    };
    await (acts[action.do] as (of: Action) => unknown)(action);
  }

  #decodeAs(decoding: Decoding): void {
    const { shortRead } = this.#setting;
    this.#remote.decoding = {
      latin1: decoding === 'latin-1',
      olderRuntime: decoding === 'blocks-older',
      swallowBom: decoding === 'blocks-swallow',
      stream: decoding === 'stream',
      ...(shortRead === null ? {} : { readLengths: [shortRead] }),
    };
  }

  /** After each action. */
  check(): void {
    if (this.#remote.held !== 0) throw new Error(`${this.#remote.held} contents were not given back`);
    const { openHandles } = this.#disk;
    if (openHandles !== 0) throw new Error(`${openHandles} mirrors were not closed`);
    const rows = this.#rows();
    for (const subject of this.#subjects) {
      const row = rows.get(subject.name);
      if (row === undefined) throw new Error(`the row of ${subject.name} is gone`);
      this.#checkMirror(subject, row);
      this.#checkKept(subject, row);
    }
  }

  /** A calm service: ordinary polls make every mirror equal; one that stops, raw bytes refused, has an error. */
  async checkProgress(): Promise<void> {
    this.#calm();
    // A file that failed by itself is asked for half an hour later at the latest.
    if (this.#hasFailed) this.#now += MAX_PAUSE_MS;
    this.#hasFailed = false;
    let reason: string | undefined = 'is not polled';
    for (let polls = 0; polls < POLLS_TO_BE_EQUAL && reason !== undefined; polls++) {
      this.#now += BETWEEN_POLLS_MS;
      const polled = await this.#unlessExpected(() => this.#engine.poll());
      this.#noteEnds(polled);
      this.check();
      reason = this.#subjects
        .filter(({ name }) => !isMarkAlone(this.#remote.files.get(name)))
        .filter(({ name }) => this.#remote.rawAccess || polled?.errors.has(name) !== true)
        .filter((subject) => !this.#isShownAlike(subject))
        .map((subject) => this.#reasonAgainst(subject, polled))
        .find((each) => each !== undefined);
    }
    if (reason !== undefined) throw new Error(`no progress: ${reason}`);
  }

  /** At the end: everything calm, and time enough. */
  async checkEnd(): Promise<void> {
    await this.checkProgress();
    let reason: string | undefined = 'is not polled';
    for (let passes = 0; passes < 4 && reason !== undefined; passes++) {
      this.#now += 700_000;
      const { openEnds } = await this.#pass();
      for (const subject of this.#subjects)
        if (this.#remote.files.has(subject.name) && (this.#setting.rawAccess || !this.#isStuck(subject)))
          subject.unsettled = false;
      this.check();
      reason = this.#subjects.map((subject) => this.#reasonAgainst(subject)).find((each) => each !== undefined);
      const open = openEnds.filter((end) => this.#setting.rawAccess && this.#remote.files.has(keyText(end)));
      if (open.length > 0) reason ??= shown(open);
    }
    if (reason !== undefined) throw new Error(reason);
  }

  /** Why a mirror is not what it should be in the end. */
  #reasonAgainst(subject: Subject, polled?: Polled): string | undefined {
    const remote = this.#remote.files.get(subject.name);
    if (remote === undefined) return undefined;
    const mirror = this.#mirror(subject);
    // A character that the end of the file cuts waits for its rest, where there is nothing but text.
    const missing = this.#setting.rawAccess ? 0 : 3;
    if (mirror.length <= remote.length && mirror.length >= remote.length - missing) return undefined;
    // Without raw bytes a file may stop, if it says so: not before the first byte that text does not show. One that was
    // rewritten may wait for the proof of that.
    const isFirst = subject.generations.length === 1 && !subject.edited;
    const isFarEnough = !isFirst || mirror.length >= alwaysShown(remote);
    if (!this.#setting.rawAccess && isFarEnough && this.#isStuck(subject)) return undefined;
    const why = shown(polled && [polled.outcomes.get(subject.name), polled.errors.get(subject.name)?.message]);
    return `${subject.name} is not complete ${why}\n${shown(mirror)}\n${shown(remote)}`;
  }

  /** A file that was rewritten, of which the service shows what it would show of the mirror (docs/guarantees.md). */
  #isShownAlike(subject: Subject): boolean {
    const [mirror, remote] = [this.#mirror(subject), this.#remote.files.get(subject.name)];
    if (remote === undefined || remote.subarray(0, mirror.length).equals(mirror)) return false;
    const [ours, theirs] = [mirror, remote].map((bytes) => this.#remote.show(bytes, 0).replace(/\ufffd+/g, '\ufffd'));
    return ours === theirs;
  }

  #isStuck({ name }: Subject): boolean {
    const rows = this.#engine.store.liveFiles.ofJob(JOB);
    return rows.find((row) => keyText(row) === name)?.error?.code === 'stuck';
  }

  end(): void {
    this.#engine.kill();
    fs.rmSync(this.#directory, { recursive: true });
  }

  #start(): Engine {
    const { overlapBytes, keepGenerations, longBacklogBytes } = this.#setting;
    const engine = new Engine({
      directory: this.#directory,
      remote: this.#remote,
      now: () => this.#now,
      disk: this.#disk,
      overlapBytes,
      keepGenerations,
      longBacklogBytes,
    });
    engine.watch(this.#subjects.map(({ key }) => key));
    return engine;
  }

  #pass() {
    return this.#engine.pass((ms) => {
      this.#now += ms;
    });
  }

  #subject(number: number): Subject {
    const subject = this.#subjects[number % this.#subjects.length];
    if (subject === undefined) throw new Error(`there is no file ${number}`);
    return subject;
  }

  // What happens to the remote files

  #append({ file, piece, share }: Extract<Change, { do: 'append' }>): void {
    const subject = this.#subject(file);
    // Written in parts that may end anywhere; what is left comes first the next time.
    if (!this.#remote.files.has(subject.name)) this.#begin(subject, Buffer.alloc(0));
    const bytes = Buffer.concat([subject.pending, this.#bytes(subject, piece)]);
    const length = Math.ceil(share * bytes.length);
    subject.pending = bytes.subarray(length);
    const before = this.#remote.files.get(subject.name) ?? Buffer.alloc(0);
    const content = Buffer.concat([before, bytes.subarray(0, length)]);
    subject.generations[subject.generations.length - 1] = content;
    this.#remote.files.set(subject.name, content);
  }

  #truncate({ file, share }: Extract<Change, { do: 'truncate' }>): void {
    const subject = this.#subject(file);
    const before = this.#remote.files.get(subject.name);
    if (before !== undefined) this.#begin(subject, before.subarray(0, Math.floor(share * before.length)));
  }

  #rewrite({ file, piece, share, size }: Extract<Change, { do: 'rewrite' }>): void {
    const subject = this.#subject(file);
    const old = this.#remote.files.get(subject.name) ?? Buffer.alloc(0);
    this.#nextLetter(subject);
    const { letter } = subject;
    const content = Buffer.concat([old.subarray(0, Math.floor(share * old.length)), this.#bytes(subject, piece)]);
    this.#begin(subject, resized(content, { size, old: old.length, letter }), letter);
  }

  #begin(subject: Subject, content: Buffer, letter?: string): void {
    if (letter === undefined) this.#nextLetter(subject);
    subject.pending = Buffer.alloc(0);
    subject.generations.push(content);
    this.#remote.files.set(subject.name, content);
  }

  #nextLetter(subject: Subject): void {
    subject.letter = LETTERS[this.#letters++ % LETTERS.length] ?? 'A';
  }

  #bytes(subject: Subject, piece: Piece): Buffer {
    const everyBytes = Math.floor(this.#setting.overlapBytes / 3);
    if (this.#setting.small) piece = piece.slice(0, 3).map(({ atom, times }) => ({ atom, times: 1 + (times % 2) }));
    return bytesOf(piece, { letter: subject.letter, atoms: ALL_ATOMS, everyBytes });
  }

  #stale(subject: Subject, share: number): void {
    const bytes = this.#remote.files.get(subject.name);
    if (bytes === undefined || subject.staleUntil !== 0) return;
    this.#remote.staleSizes.set(subject.name, Math.floor(share * bytes.length));
    subject.staleUntil = this.#now + STALE_MS;
  }

  #beforeCall(): void {
    for (const { name, staleUntil } of this.#subjects)
      if (staleUntil <= this.#now) this.#remote.staleSizes.delete(name);
    if (this.#race === undefined || this.#race.calls-- > 0) return;
    const { change } = this.#race;
    this.#race = undefined;
    void this.act(change);
  }

  #calm(): void {
    this.#remote.rawAccess = this.#setting.rawAccess;
    this.#remote.failures.length = 0;
    this.#remote.poisoned.clear();
    this.#disk.room = Number.POSITIVE_INFINITY;
    this.#race = undefined;
  }

  // What the engine does

  async #work(work: 'poll' | 'complete' | 'pass'): Promise<void> {
    this.#now += 1_000;
    if (work === 'pass') await this.#unlessExpected(() => this.#pass());
    else this.#noteEnds(await this.#unlessExpected(() => this.#engine.poll(work === 'complete')));
  }

  #rows(): Map<string, LiveFileRow> {
    return new Map(this.#engine.store.liveFiles.ofJob(JOB).map((row) => [keyText(row), row]));
  }

  /** What the model brings about may fail a poll, or a file; a defect may not. */
  async #unlessExpected<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'internal' || error.code === 'store') throw thrown;
      return undefined;
    }
  }

  #noteEnds(polled: Polled | undefined): void {
    this.#hasFailed ||= (polled?.errors.size ?? 0) > 0;
    for (const error of polled?.errors.values() ?? []) if (error.code === 'internal') throw error;
    const rows = this.#rows();
    for (const subject of this.#subjects) {
      const end = polled?.outcomes.get(subject.name);
      if (end !== 'current' && end !== 'incomplete-character' && end !== 'raw-unavailable') continue;
      // Without a commit since the state was lost, a mirror that was edited before may still wait for raw bytes. Nothing
      // is compared before it is known how the service decodes (docs/guarantees.md).
      const isDecoderKnown = this.#engine.store.capabilities.get(DECODING_CAPABILITY) !== undefined;
      if (end === 'current' || (isDecoderKnown && rows.get(subject.name)?.checksum !== null)) subject.unsettled = false;
      if (subject.staleUntil <= this.#now) subject.staleUntil = 0;
    }
  }

  // What a person does to the mirrors

  async #edit({ file, edit, where, restart }: Extract<Action, { do: 'edit' }>): Promise<void> {
    const subject = this.#subject(file);
    const mirror = this.#engine.mirror(subject.key);
    if (!fs.existsSync(mirror)) return;
    // Bytes behind the position, as on a full disk, are committed by the next start; an edit would hide in them.
    const row = this.#engine.store.liveFiles.ofJob(JOB).find((each) => keyText(each) === subject.name);
    const bytes = fs.readFileSync(mirror);
    if (row?.position !== bytes.length) return;
    if (restart) this.#engine.kill();
    const at = Math.floor(where * bytes.length);
    const junk = Buffer.from(`${Math.floor(where * 1000)} junk \xff`, 'latin1');
    if (edit === 'append') fs.appendFileSync(mirror, junk);
    if (edit === 'change' && bytes.length > 0) {
      bytes[at] = (bytes[at] ?? 0) ^ (1 + Math.floor(where * 255));
      fs.writeFileSync(mirror, bytes);
    }
    if (edit === 'truncate') fs.truncateSync(mirror, at);
    if (edit === 'delete' || edit === 'replace') fs.rmSync(mirror);
    if (edit === 'replace') fs.writeFileSync(mirror, junk);
    // Writes within one tick of the system's clock would have one and the same time.
    this.#edits++;
    if (edit !== 'delete') fs.utimesSync(mirror, new Date(), new Date(Date.now() + this.#edits * 1_000));
    this.#forgetPromises(subject);
    if (restart) this.#engine = this.#start();
  }

  #forgetPromises(subject: Subject): void {
    subject.unsettled = true;
    subject.edited = true;
  }

  // What must hold

  #mirror(subject: Subject): Buffer {
    const file = this.#engine.mirror(subject.key);
    return fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0);
  }

  #checkMirror(subject: Subject, row: LiveFileRow): void {
    const mirror = this.#mirror(subject);
    if (!subject.edited && row.position > mirror.length) fail(subject, 'is shorter than promised', row, mirror);
    if (subject.unsettled) return;
    const fits = (content: Buffer) => content.subarray(0, mirror.length).equals(mirror);
    if (mirror.length > 0 && !subject.generations.some(fits))
      fail(subject, 'is no prefix', mirror, subject.generations, row);
  }

  #checkKept(subject: Subject, row: LiveFileRow): void {
    if (subject.edited) return;
    if (row.generation > Math.max(1, subject.generations.length)) fail(subject, 'has a generation too many', row);
    if (row.generation > 1 && row.mismatches.every(({ generation }) => generation !== row.generation))
      fail(subject, 'has a generation without a reason', row);
    subject.promised.set(row.generation, Math.max(row.position, subject.promised.get(row.generation) ?? 0));
    const keep =
      subject.key.file === 'progress' ? Math.min(1, this.#setting.keepGenerations) : this.#setting.keepGenerations;
    for (let back = 1; back <= row.generation - 1; back++) {
      const file = `${this.#engine.mirror(subject.key)}.${back}`;
      if (row.rotation !== null) return;
      if (back > keep) {
        if (fs.existsSync(file)) fail(subject, `has kept too much: ${back}`);
        continue;
      }
      const kept = fs.existsSync(file) ? fs.readFileSync(file) : undefined;
      if (kept === undefined) fail(subject, `has lost its generation ${back}`, row);
      const number = row.generation - back;
      const wanted = subject.promised.get(number) ?? 0;
      if (kept.length < wanted) fail(subject, `kept too little of generation ${back}: ${wanted}`, kept);
      const fits = (content: Buffer) => content.subarray(0, kept.length).equals(kept);
      if (!subject.generations.some(fits)) fail(subject, `kept what never was: ${back}`, kept, subject.generations);
    }
  }
}

/** How an earlier agent found the service to decode. A server of UTF-8 does not become another one. */
function learnedBefore({ learned, decoding }: Setting): string | undefined {
  if (learned === 'nothing') return undefined;
  return decoding === 'latin-1' || learned === 'wrongly' ? 'other' : 'utf-8';
}

/** A file that shows no text though it has bytes (docs/guarantees.md): the complete pass finds it. */
function isMarkAlone(content: Buffer | undefined): boolean {
  return content !== undefined && ['efbbbf', 'fffe', 'feff'].includes(content.toString('hex'));
}

/** How many bytes at the start of a file each decoder shows: ASCII, if no mark may stand before it. */
function alwaysShown(content: Buffer): number {
  const length = content.findIndex((byte) => byte >= 0x80);
  return length < 0 ? content.length : length < 2 ? 0 : length;
}

/** Made longer or shorter than what was there before; what is added has the letter of the generation. */
function resized(content: Buffer, { size, old, letter }: { size: string; old: number; letter: string }): Buffer {
  const length = {
    shorter: Math.min(content.length, Math.max(0, old - 1)),
    equal: old,
    longer: Math.max(content.length, old + 1),
  }[size];
  if (length === undefined) return content;
  return Buffer.concat([content.subarray(0, length), Buffer.alloc(Math.max(0, length - content.length), letter)]);
}

function fail({ name }: Subject, what: string, ...details: unknown[]): never {
  throw new Error(`${name} ${what}\n${details.map(shown).join('\n')}`);
}

/** Bytes as one character each. */
function shown(detail: unknown): string {
  return JSON.stringify(detail, (_, value: unknown) => {
    const isBytes =
      typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value;
    return isBytes ? Buffer.from(value.data as number[]).toString('latin1') : value;
  });
}
