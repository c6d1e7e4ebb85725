/**
 * The disk of a run: real files, whose calls are made at once, in a fixed order, and counted, and so are transactions of
 * the state. A call can fail, and the process can end at a call. A power loss takes bytes and names that were not flushed.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import type { Chance } from './chance.ts';
import { SimulatedDatabase } from './database.ts';
import { replaced } from './machine.ts';
import { handleOf, type Real, realCalls } from './real-calls.ts';

const require = createRequire(import.meta.url);
const cjs = require('node:fs') as Record<string, unknown>;
const promises = cjs['promises'] as Record<string, unknown>;

/** A rename, until the names of its directory are flushed. */
interface Renamed {
  readonly from: string;
  readonly to: string;
  /** What stood there before. */
  readonly before: Buffer | undefined;
}

/** Calls that fail on a full disk. */
const NEEDS_ROOM = ['write', 'mkdir', 'commit'];

/** How SQLite reports what the system reports with another name. */
const OF_SQLITE: Readonly<Record<string, string>> = {
  ENOSPC: 'SQLITE_FULL',
  EIO: 'SQLITE_IOERR_WRITE',
  EACCES: 'SQLITE_READONLY',
};

/** Makes a call; of a write, a part of it. */
export type Make<T> = (share: number) => T;

const NEVER = new Promise<never>(() => {});

export class SimulatedDisk {
  /** Calls so far. */
  calls = 0;
  /** The process has ended: nothing that it still calls has any effect. */
  isDead = false;
  /** There is no room: of what is written, a part fits. Of mirrors: the state has a disk of its own, with room. */
  full: 'no' | 'of mirrors' | 'all' = 'no';
  /** A flush takes so long, and the removal of all files of a job. */
  flushMs = 0;
  removalMs = 0;
  /** Whether the state has no room, of several ones that of the process which runs. */
  isStateFull: () => boolean = () => false;
  /** Called before each call that changes a file of the mirrors. */
  onWrite: (file: string) => void = () => {};
  /** Called before each call, by its name. */
  onCall: (name: string, file: string) => void = () => {};
  /** Called before each transaction of the state. */
  onTransaction: () => void = () => {};
  readonly database: SimulatedDatabase;
  readonly #root: string;
  readonly #mirrors: string;
  /** Calls are the machine's own. */
  #isAside = false;
  readonly #real: Real = realCalls();
  readonly #restore: () => void;
  readonly #opened = new Map<number, string>();
  /** The bytes on the disk of files with others that are not flushed. */
  readonly #durable = new Map<string, Buffer>();
  /** Where the zeros begin that a loss of power left at the end of files, until the agent changes the file. */
  readonly #zeros = new Map<string, number>();
  #renamed: Renamed[] = [];
  #fails: { left: number; readonly code: string } | undefined;
  #ends: { left: number; readonly end: () => void } | undefined;

  readonly #sleep: (ms: number) => Promise<void>;

  /** Only calls below `root` are of this disk, and only those below `mirrors` fail. */
  constructor(root: string, mirrors: string, sleep: (ms: number) => Promise<void>) {
    this.#sleep = sleep;
    this.#root = `${root}${path.sep}`;
    this.#mirrors = `${mirrors}${path.sep}`;
    this.database = new SimulatedDatabase(this.#beginTransaction);
    this.#restore = replaced([...this.#sync(), ...this.#async(), ...this.database.patches]);
  }

  /** Work of the test on the files: no call of it is counted or fails. */
  aside<T>(work: () => T): T {
    const before = this.#isAside;
    this.#isAside = true;
    try {
      return work();
    } finally {
      this.#isAside = before;
    }
  }

  /** Files that are open. */
  get open(): number {
    return this.#opened.size;
  }

  /** Files with bytes that were not flushed. */
  get unflushed(): number {
    return [...this.#durable.keys()].filter((file) => this.#real.existsSync(file)).length;
  }

  /** The call after `calls` others fails, once. */
  failAfter(calls: number, code: string): void {
    this.#fails = { left: calls, code };
  }

  /** At the call after `calls` others, the process ends. */
  endAfter(calls: number, end: () => void): void {
    this.#ends = { left: calls, end };
  }

  /** All that was chosen to fail does not. */
  heal(): void {
    this.#fails = undefined;
    this.#ends = undefined;
    this.full = 'no';
    this.flushMs = 0;
  }

  /** Bytes of a file that a loss of power leaves, or left. */
  durableLength(file: string): number {
    const length = this.#durable.get(file)?.length ?? this.#real.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return Math.min(length, this.#zeros.get(file) ?? length);
  }

  /** The bytes of a file, but not zeros that a loss of power left at its end. */
  withoutZeros(file: string): Buffer {
    const bytes = this.#real.readFileSync(file);
    const from = this.#zeros.get(file) ?? bytes.length;
    return bytes.subarray(from).every((byte) => byte === 0) ? bytes.subarray(0, from) : bytes;
  }

  /** Closes what an ended process had open, and serves the next one. */
  restart(): void {
    this.aside(() => this.#opened.forEach((_, fd) => void this.#real.closeSync(fd)));
    this.#opened.clear();
    this.#ends = undefined;
    this.isDead = false;
  }

  /** Takes what was not flushed, or a part of it, or leaves zeros in its place. */
  powerLoss(chance: Chance): void {
    this.aside(() => this.#takeUnflushed(chance));
    this.#durable.clear();
    this.#renamed = [];
  }

  #takeUnflushed(chance: Chance): void {
    for (const { from, to, before } of this.#renamed.reverse()) {
      if (chance.is(0.5) || !this.#real.existsSync(to)) continue;
      if (this.#real.lstatSync(to).isFile()) this.#real.renameSync(to, from);
      if (before !== undefined) this.#real.writeFileSync(to, before);
    }
    for (const [file, durable] of this.#durable) {
      if (!this.#real.existsSync(file)) continue;
      const written = this.#real.readFileSync(file);
      const kept = chance.whole(durable.length, Math.max(durable.length, written.length));
      const grew = written.subarray(0, durable.length).equals(durable);
      const isFilled = chance.is(0.3);
      const left = isFilled ? Buffer.from(written).fill(0, kept) : written.subarray(0, kept);
      this.#real.writeFileSync(file, grew ? left : durable);
      if (isFilled && grew) this.#zeros.set(file, kept);
    }
  }

  close(): void {
    this.#restore();
  }

  #isMine(at: unknown): at is string {
    return typeof at === 'string' && at.startsWith(this.#root);
  }

  /** Counts a call; returns the error with which it is to fail. */
  #step(call: string, at: string): NodeJS.ErrnoException | undefined {
    if (!at.startsWith(this.#mirrors)) return undefined;
    this.calls += 1;
    if (this.#ends !== undefined && this.#ends.left-- <= 0) {
      const { end } = this.#ends;
      this.#ends = undefined;
      this.isDead = true;
      end();
    }
    if (this.isDead) return Object.assign(new Error('the process has ended'), { isEnd: true });
    if (this.full !== 'no' && NEEDS_ROOM.includes(call) && (this.full === 'all' || call !== 'commit'))
      return failure('ENOSPC', call, at);
    if (this.#fails === undefined || this.#fails.left-- > 0) return undefined;
    const { code } = this.#fails;
    this.#fails = undefined;
    return failure(code, call, at);
  }

  #noteWrite(file: string): void {
    if (file.startsWith(this.#mirrors) && !this.#durable.has(file))
      this.#durable.set(file, this.#real.readFileSync(file));
  }

  #noteFlush(at: string): void {
    this.#durable.delete(at);
    this.#renamed = this.#renamed.filter(({ to }) => path.dirname(to) !== at);
  }

  #noteRename(from: string, to: string): void {
    const stat = this.#real.lstatSync(to, { throwIfNoEntry: false });
    this.#renamed.push({ from, to, before: stat?.isFile() === true ? this.#real.readFileSync(to) : undefined });
    const durable = this.#durable.get(from);
    this.#durable.delete(to);
    this.#durable.delete(from);
    if (durable !== undefined) this.#durable.set(to, durable);
  }

  /** A call by a path, or on an open file. */
  #call<T>(name: string, at: unknown, make: Make<T>): T {
    const file = typeof at === 'number' ? this.#opened.get(at) : at;
    if (this.#isAside || !this.#isMine(file)) return make(1);
    const wasDead = this.isDead;
    // Closing takes effect whatever else fails.
    const failed = name !== 'close' || this.isDead ? this.#step(name, file) : undefined;
    this.onCall(name, file);
    const writes = name === 'write' || name === 'truncate';
    if (writes && !wasDead) this.#noteWrite(file);
    if (writes && file.startsWith(this.#mirrors)) this.onWrite(file);
    // A write that fails, or within which the process ends, is torn.
    if (failed !== undefined && name === 'write' && !wasDead) this.aside(() => make(0.5));
    if (failed !== undefined) throw failed;
    const made = this.aside(() => make(1));
    if (writes) this.#zeros.delete(file);
    if (name === 'open') this.#opened.set(Number(made), file);
    if (name === 'close') this.#opened.delete(Number(at));
    if (name === 'datasync' || name === 'sync') this.#noteFlush(file);
    return made;
  }

  /** The same call, as one that answers later; of an ended process, it never does. */
  readonly #later = async <T>(name: string, at: unknown, make: Make<T>): Promise<T> => {
    try {
      const isFlush = name === 'datasync' || name === 'sync';
      if (isFlush && this.flushMs > 0 && !this.isDead && this.#opened.has(Number(at))) await this.#sleep(this.flushMs);
      const isOfJob = name === 'rm' && path.dirname(String(at)) === this.#mirrors.slice(0, -1);
      if (isOfJob && this.removalMs > 0 && !this.isDead) await this.#sleep(this.removalMs);
      return this.#call(name, at, make);
    } catch (error) {
      if ((error as { isEnd?: boolean }).isEnd === true) return NEVER;
      throw error;
    }
  };

  /** A transaction of the state is a call, too: nothing is left of one that fails, or at which the process ends. */
  readonly #beginTransaction = (): void => {
    if (this.#isAside) return;
    this.onTransaction();
    const isFull = this.isStateFull();
    const failed = isFull ? failure('ENOSPC', 'commit', this.#root) : this.#step('commit', this.#mirrors);
    const code = OF_SQLITE[failed?.code ?? ''];
    if (code !== undefined) throw new Database.SqliteError('a fault of the simulation', code);
    if (failed !== undefined) throw failed;
  };

  #sync(): [object, string, unknown][] {
    const real = this.#real as unknown as Record<string, (...args: unknown[]) => unknown>;
    const names = ['open', 'close', 'lstat', 'stat', 'fstat', 'read', 'write', 'chmod', 'readlink'];
    const sync = names.map((name): [object, string, unknown] => {
      const make = real[`${name}Sync`] as (...args: unknown[]) => unknown;
      const call = (...args: unknown[]) =>
        this.#call(name, args[0], (share) => {
          const isPart = name === 'write' && share < 1;
          return isPart ? make(...args.slice(0, 3), Math.floor(Number(args[3]) * share), args[4]) : make(...args);
        });
      return [cjs, `${name}Sync`, call];
    });
    return [...sync, [cjs, 'renameSync', (from: string, to: string) => this.#rename(from, to)]];
  }

  #rename(from: string, to: string): void {
    this.#call('rename', from, () => {
      if (this.#isMine(from)) this.#noteRename(from, to);
      this.#real.renameSync(from, to);
    });
  }

  #copy(from: string, to: string, mode: number | undefined): void {
    this.#real.copyFileSync(from, to, mode);
    this.#durable.set(to, Buffer.alloc(0));
  }

  #async(): [object, string, unknown][] {
    const real = this.#real as unknown as Record<string, (...args: unknown[]) => unknown>;
    const later = this.#later;
    const names = ['lstat', 'stat', 'mkdir', 'chmod', 'readlink', 'statfs', 'rm', 'readdir', 'readFile'];
    const ofPath = names.map((name): [object, string, unknown] => {
      const make = real[`${name}Sync`] as (...args: unknown[]) => unknown;
      const before = promises[name] as (...args: unknown[]) => unknown;
      const call = (...args: unknown[]) => {
        // A name that may not be UTF-8 is a buffer.
        const at = Buffer.isBuffer(args[0]) ? args[0].toString() : args[0];
        return this.#isMine(at) ? later(name, at, () => make(...args)) : before(...args);
      };
      return [promises, name, call];
    });
    const openBefore = promises['open'] as (...args: unknown[]) => unknown;
    const open = async (file: unknown, flags: number, mode?: number) => {
      if (!this.#isMine(file)) return openBefore(file, flags, mode);
      const fd = await later('open', file, () => this.#real.openSync(file, flags, mode));
      return handleOf(fd, this.#real, later);
    };
    const onFile = (name: 'read' | 'truncate' | 'datasync' | 'sync', before: unknown) => {
      const others = promisify(before as () => void) as (...all: unknown[]) => unknown;
      const call = (fd: number, ...args: unknown[]) => {
        if (!this.#opened.has(fd)) return others(fd, ...args);
        return (handleOf(fd, this.#real, later)[name] as (...all: unknown[]) => unknown)(...args);
      };
      return Object.assign(() => {}, { [promisify.custom]: call });
    };
    return [
      ...ofPath,
      [promises, 'open', open],
      [promises, 'opendir', async (at: string) => this.#entries(at)],
      [
        promises,
        'copyFile',
        (from: string, to: string, mode?: number) => later('copyFile', to, () => this.#copy(from, to, mode)),
      ],
      [promises, 'rename', (from: string, to: string) => later('rename', undefined, () => this.#rename(from, to))],
      [promises, 'symlink', (to: string, at: string) => later('symlink', at, () => this.#real.symlinkSync(to, at))],
      [cjs, 'read', onFile('read', fs.read)],
      [cjs, 'ftruncate', onFile('truncate', fs.ftruncate)],
      [cjs, 'fdatasync', onFile('datasync', fs.fdatasync)],
      [cjs, 'fsync', onFile('sync', fs.fsync)],
    ];
  }

  async *#listed(at: string): AsyncGenerator<fs.Dirent> {
    // In a fixed order, whatever the file system has.
    const entries = this.#real.readdirSync(at, { withFileTypes: true });
    yield* entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async #entries(at: string): Promise<AsyncGenerator<fs.Dirent>> {
    await this.#later('opendir', at, () => this.#real.accessSync(at));
    return this.#listed(at);
  }
}

/** An error as the system's calls throw it. */
function failure(code: string, syscall: string, at: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall} '${at}'`), { code, syscall, path: at, errno: -5 });
}
