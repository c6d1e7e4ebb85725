/** Results over a service in memory: real files and a real store, a clock that the test holds. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Listing, Parts, Remote, Sink, TransferMethod } from '../../../src/agent/ports/server.ts';
import type {
  DirectArrival,
  DirectFile,
  DirectRequest,
  DirectTransfer,
  Irregular,
} from '../../../src/agent/ports/transfer.ts';
import { DirectResults } from '../../../src/agent/results/download/by-direct.ts';
import { Leases } from '../../../src/agent/results/download/leases.ts';
import { Results, type ResultsEnd, type ResultsOptions, resultsDirectory } from '../../../src/agent/results/results.ts';
import { asJobtailError, type ErrorCode, JobtailError, KeyRefused, type NoFile } from '../../../src/errors.ts';
import type { JobId, LiveFileName, TaskId } from '../../../src/job.ts';
import { SHIFT_CAPABILITY } from '../../../src/live-paths.ts';
import { partialName } from '../../../src/safe-names.ts';
import type { ResultRow } from '../../../src/store/rows.ts';
import { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { newState } from '../../support/engine.ts';
import { expanded } from '../../support/errors.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

export const JOB = '501' as JobId;
const TASK = '9001' as TaskId;

/** The files of a job as the service lists and hands them out. */
export class FilesRemote implements Remote {
  readonly files = new Map<string, Buffer | JobtailError>();
  /** Listed besides the files, in front of them. */
  listedToo: string[] = [];
  /** Called with each request for a file. */
  onRequest: () => void = () => {};
  /** Called between two pieces of a download. */
  onPiece: (name: string) => void | Promise<void> = () => {};
  pieceBytes = 1000;
  listings = 0;
  readonly downloads: string[] = [];
  /** How long each of them might be silent. */
  readonly silences: (number | undefined)[] = [];
  running = 0;
  maxAtATime = 0;
  method: TransferMethod | null | JobtailError = null;
  readonly transferCalls: string[] = [];

  set(name: string, content: string | Buffer): void {
    this.files.set(name, Buffer.from(content as string));
  }

  async readParts(..._: Parameters<Remote['readParts']>): Promise<Parts> {
    return { parts: [], refused: 0 };
  }

  /** By name: what the listing says besides. */
  readonly stamps = new Map<string, string>();
  /** Names that the service hands out no file of, with the reason. */
  readonly reasons = new Map<string, string>();

  async listChangedFiles(): Promise<Listing> {
    this.listings++;
    const names = [...this.listedToo, ...this.files.keys()];
    return this.stamps.size === 0 ? names : Object.assign(names, { stamps: new Map(this.stamps) });
  }

  reasonAgainst(name: string): string | undefined {
    return this.reasons.get(name);
  }

  async downloadFile(_jobId: JobId, name: string, sink: Sink, signal: AbortSignal, silentMs?: number): Promise<number> {
    this.onRequest();
    this.downloads.push(name);
    this.silences.push(silentMs);
    this.running++;
    this.maxAtATime = Math.max(this.maxAtATime, this.running);
    try {
      // As the real one: nothing is handed on in the moment of the call.
      await Promise.resolve();
      const found = this.files.get(name);
      if (found === undefined) throw new JobtailError('not-found', 'the service has no such file');
      if (found instanceof JobtailError) throw found;
      for (let at = 0; at < found.length; at += this.pieceBytes) {
        if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
        await sink(found.subarray(at, at + this.pieceBytes));
        await this.onPiece(name);
      }
      return found.length;
    } catch (thrown) {
      throw asJobtailError(thrown);
    } finally {
      this.running--;
    }
  }

  async getTransferMethod(): Promise<TransferMethod | null> {
    this.transferCalls.push('get');
    if (this.method instanceof JobtailError) throw this.method;
    return this.method;
  }

  async endTransfer(_jobId: JobId, method: TransferMethod): Promise<void> {
    this.transferCalls.push(`end ${method.credentials?.publicKey ?? 'nothing'}`);
  }
}

export const OPTIONS = {
  intervalMs: 60_000,
  include: ['**'],
  exclude: [] as string[],
  maxFileBytes: null,
  bandwidthLimit: null,
};

export class ResultsPlace {
  readonly directory: string;
  readonly mirror: string;
  readonly remote = new FilesRemote();
  readonly store: Store;
  readonly reported: string[] = [];
  now = 1_000_000;
  /** Of the clock that only goes forward. */
  monotonic = 0;
  /** Called before what waits for a time goes on. */
  onTimer: (delayMs: number) => void = () => {};
  results: Results;

  constructor(context: Partial<ResultsOptions> = {}, parent?: string) {
    this.directory = temporaryDirectory(parent);
    this.mirror = path.join(this.directory, 'mirror');
    const state = newState(path.join(this.directory, 'state'));
    fs.mkdirSync(this.mirror);
    this.store = new Store({ directory: state, service: 'model', owner: true, now: () => this.now });
    onTestFinished(() => this.store.close());
    this.watch();
    this.results = this.restarted(context);
  }

  /** The results of a new process. */
  restarted(context: Partial<ResultsOptions> = {}): Results {
    this.results = new Results({
      store: this.store,
      mirrorDirectory: this.mirror,
      onNetwork: false,
      rules: OPTIONS,
      clock: {
        now: () => this.now,
        monotonic: () => this.monotonic,
        timer: (ms, callback) => this.#timer(ms, callback),
      },
      minFreeBytes: 0,
      silentMs: 60_000,
      parallel: 1,
      direct: null,
      onRefused: (_job, { count, fresh }) =>
        this.reported.push(`${count} refused: ${fresh.map(({ name, reason }) => `${name}: ${reason}`).join('; ')}`),
      onFallback: (_job, reason) => this.reported.push(`fallback: ${reason}`),
      ...context,
    });
    return this.results;
  }

  /** What waits for a time goes on in a moment, and that time has passed. */
  #timer(delayMs: number, callback: () => void): () => void {
    const soon = setImmediate(() => {
      this.now += delayMs;
      this.monotonic += delayMs;
      this.onTimer(delayMs);
      callback();
    });
    return () => clearImmediate(soon);
  }

  sync(isFinal = false, signal = new AbortController().signal): Promise<ResultsEnd> {
    return this.results.sync(JOB, { remote: this.remote, isFinal, signal });
  }

  row(name: string): ResultRow | undefined {
    return [...this.store.results.ofJob(JOB)].find((row) => row.name === name);
  }

  /** The path of a result here. */
  path(...parts: string[]): string {
    return path.join(resultsDirectory(this.mirror, JOB), ...parts);
  }

  read(...parts: string[]): string {
    return fs.readFileSync(this.path(...parts), 'utf8');
  }

  /** All there is below `results/`, links with where they lead; none is followed (newer releases of Node.js would). */
  tree(directory = this.path(), prefix = ''): string[] {
    if (!fs.existsSync(directory)) return [];
    return fs
      .readdirSync(directory, { withFileTypes: true })
      .flatMap((entry) => {
        const file = path.join(directory, entry.name);
        const name = path.join(prefix, entry.name);
        if (entry.isDirectory()) return this.tree(file, name);
        return entry.isSymbolicLink() ? `${name} -> ${fs.readlinkSync(file)}` : name;
      })
      .sort();
  }

  /** Puts a live mirror there, as the live path leaves it; `isVerified`: as a comparison with its raw bytes does. */
  live(
    file: LiveFileName,
    content: string,
    more: { task?: TaskId; relativePath?: string | null; listedName?: string; isVerified?: boolean } = {},
  ): void {
    const { task = TASK, relativePath = `${file}.txt`, listedName = null, isVerified = false } = more;
    const mirror = path.join(this.mirror, JOB, 'live', task, `${file}.log`);
    fs.mkdirSync(path.dirname(mirror), { recursive: true });
    fs.writeFileSync(mirror, content);
    this.watch([task], [file]);
    const row = this.store.liveFiles.ofJob(JOB).find((one) => one.taskId === task && one.file === file);
    if (row === undefined) throw new Error('it was just watched');
    const position = Buffer.byteLength(content);
    this.store.liveFiles.save({ ...row, position, relativePath, listedName, verified: isVerified ? position : null });
  }

  watch(tasks: readonly TaskId[] = [], files: readonly LiveFileName[] = [], results = true, jobId = JOB): void {
    const order = { jobId, tasks, files, results, settleAfterMs: null, source: 'command' } as const;
    this.store.jobs.watch(order, this.now);
  }
}

/** A direct way in memory. */
export class ModelTransfer implements DirectTransfer {
  readonly list = async () => {
    if (this.failure !== undefined) throw this.failure;
    return { files: [], links: 0 };
  };
  /** The names of each transfer, and its limit in bytes per second. */
  readonly orders: string[] = [];
  /** After the first file. */
  failure: JobtailError | undefined;
  onFetch: (directory: string) => void = () => {};
  /** Names that cannot be had this way, and contents that can be had only this way. */
  readonly passesOver = new Set<string>();
  readonly contents = new Map<string, string>();
  /** What the host shows to be no regular file. */
  readonly irregular = new Map<string, Irregular>();
  /** So many files are handed over together. */
  together: number;
  readonly #place: ResultsPlace;

  constructor(place: ResultsPlace, together = Number.POSITIVE_INFINITY) {
    this.#place = place;
    this.together = together;
  }

  async fetch<File extends DirectFile>(request: DirectRequest<File>): Promise<void> {
    const {
      files,
      directory,
      maxFileBytes,
      largestPresentBytes,
      onFiles,
      onIrregular,
      onTooLarge,
      onBytes,
      onReached,
    } = request;
    const nameOf = ({ parts }: File) => `/${parts.join('/')}`;
    const limit = request.bytesPerSecond === null ? '' : ` at ${request.bytesPerSecond}/s`;
    const room = largestPresentBytes === 0 ? '' : ` with room for ${largestPresentBytes} bytes`;
    // As the agent: not by a synchronous call.
    const left = await fs.promises.readdir(directory).catch(() => []);
    this.orders.push(`${files.map(nameOf).join(' ')}${limit}${room}${left.map((name) => ` after ${name}`).join('')}`);
    await fs.promises.mkdir(directory, { recursive: true });
    this.onFetch(directory);
    const arrivals: DirectArrival<File>[] = [];
    let bytes = 0;
    for (const [index, file] of files.entries()) {
      const name = nameOf(file);
      const kind = this.irregular.get(name);
      const content = this.contents.get(name) ?? this.#place.remote.files.get(name);
      if (kind !== undefined) onIrregular(file, kind);
      if (kind !== undefined || this.passesOver.has(name)) continue;
      if (content === undefined || content instanceof JobtailError) continue;
      if (this.failure !== undefined && index > 0) throw this.failure;
      if (maxFileBytes !== null && content.length > maxFileBytes) {
        onTooLarge(file);
        continue;
      }
      const arrived = path.join(directory, `${index}`);
      await fs.promises.writeFile(arrived, content);
      bytes += content.length;
      onBytes(bytes);
      arrivals.push({ file, path: arrived });
      if (arrivals.length >= this.together) await onFiles(arrivals.splice(0));
    }
    await onFiles(arrivals);
    if (this.failure !== undefined) throw this.failure;
    onReached();
  }
}

/** The direct way by a transfer of the test, by the clock of the place. */
export function directBy(place: ResultsPlace, transfer: DirectTransfer, wanted: 'direct' | 'auto' = 'direct') {
  place.remote.method = {
    serverHostname: 'h',
    sharedBasepath: '/scratch/501',
    protocol: 'SftpScp',
    credentials: { username: 'hpc', privateKey: 'secret', publicKey: 'key' },
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const clock = { ...systemClock, now: () => place.now, monotonic: () => place.monotonic };
  const leases = new Leases({ store: place.store, clock, log });
  const transfers = { SftpScp: transfer, NetworkShare: transfer };
  return { direct: new DirectResults({ leases, random: () => 1, clock, transfers, wanted, aboveBytes: 1_000 }) };
}

interface Ssh {
  readonly wanted?: 'direct';
  readonly together?: number;
  readonly minFreeBytes?: number;
  readonly rules?: object;
  readonly contents?: Readonly<Record<string, string>>;
  readonly passesOver?: readonly string[];
  readonly irregular?: Readonly<Record<string, Irregular>>;
}

/** A job whose results are synced step by step: a step, and what it changed. */
export class ResultsStory {
  readonly place: ResultsPlace;
  transfer: ModelTransfer | undefined;
  readonly #waits: number[] = [];
  #saved = 0;
  #before: Record<string, string> = {};
  /** How many orders of a transfer, calls for its keys, and reports were printed. */
  #ordersShown = 0;
  #callsShown = 0;
  #reportsShown = 0;
  #stop = new AbortController();

  constructor() {
    this.place = new ResultsPlace();
    this.place.onTimer = (ms) => void this.#waits.push(Math.round(ms));
    const { results } = this.place.store;
    const saveAll = results.saveAll.bind(results);
    results.saveAll = (rows) => {
      const all = [...rows];
      this.#saved += all.length;
      saveAll(all);
    };
  }

  /** Rows, counts, files and calls, each by its name. */
  get #state(): Record<string, string> {
    const { place } = this;
    const sinceStart = (at: number | null) => at && Math.round((at - 1_000_000) / 1_000);
    const rows = [...place.store.results.ofJob(JOB)].map((row) => {
      const { name, state, bytes, sha256, hangs, live, reason, fetchedAt, dueAt, intervalMs, stamp, stampProven } = row;
      const more = [
        bytes === null ? '' : ` ${bytes} bytes`,
        hangs > 0 ? ` hangs ${hangs}` : '',
        live ? ` ${live}` : '',
      ];
      const times = `${sinceStart(fetchedAt)}, due ${sinceStart(dueAt)}, each ${intervalMs / 1_000}`;
      const dates = stamp === null ? '' : `, ${stamp}${stampProven ? ' proven' : ''}`;
      const all = `${state}${more.join('')} ${sha256?.slice(0, 6) ?? ''}(fetched ${times}${dates})`;
      return [name, `${all}${reason === null ? '' : `: ${reason}`}`];
    });
    const { wanted, done, wantedBytes, bytes, way, endedAt } = place.store.resultSyncs.get(JOB) ?? {};
    const staging = path.join(place.mirror, JOB, '.direct');
    const counts = Object.entries(place.store.results.counts(JOB)).filter(([, count]) => count > 0);
    const contentOf = (file: string) =>
      file.includes(' -> ')
        ? file.replace(place.directory, 'DIR')
        : `${file} ${place.read(file).slice(0, 20).trimEnd()}${fs.statSync(place.path(file)).mtimeMs === 1_000 ? ' (untouched)' : ''}`;
    return {
      ...Object.fromEntries(rows),
      here: place.tree().map(contentOf).join(', '),
      staging: fs.existsSync(staging) ? `has ${fs.readdirSync(staging).join(', ')}` : '',
      reported: place.reported.slice(this.#reportsShown).join(', '),
      shift: place.store.capabilities.get(SHIFT_CAPABILITY) ?? '',
      counts: `${counts.map((count) => count.join(' ')).join(', ')}; progress ${done} of ${wanted}, ${bytes} of ${wantedBytes} bytes, by ${way}, ended ${sinceStart(endedAt ?? null)}`,
      fallback: place.store.resultSyncs.get(JOB)?.fallback ?? '',
    };
  }

  /** What was ordered of a direct transfer since the last line, and its keys. */
  #ordered(): string {
    const all = this.transfer?.orders.slice(this.#ordersShown) ?? [];
    const orders = all.map((one) => (one.length > 300 ? `${one.slice(0, 40)} ... (${one.split(' ').length})` : one));
    const calls = this.place.remote.transferCalls.slice(this.#callsShown);
    this.#ordersShown += orders.length;
    this.#callsShown += calls.length;
    const parts = [['ordered', orders] as const, ['key', calls] as const].filter(([, list]) => list.length > 0);
    return parts
      .map(([what, list]) => `; ${what} ${list.join(', ')}`)
      .join('')
      .replaceAll(this.place.mirror, 'MIRROR');
  }

  #requested(): string {
    const { downloads, silences } = this.place.remote;
    const all = downloads.map((name, at) => (silences[at] === 60_000 ? name : `${name} for ${silences[at]} ms`));
    const shown = all.length > 40 ? `${all.length} files` : all.join(', ');
    downloads.length = 0;
    silences.length = 0;
    return `[${shown}]`;
  }

  /** What one sync ends with, requests, and changes. */
  async sync(step: string): Promise<string[]> {
    const { place } = this;
    this.#saved = 0;
    this.#waits.length = 0;
    const { listings } = place.remote;
    const end = await place.sync(step.startsWith('final'), this.#stop.signal).then(
      ({ tookMs: _, ...counts }) =>
        Object.entries(counts)
          .map(([name, count]) => (count > 0 ? `${count} ${name}` : ''))
          .filter((text) => text !== '')
          .join(', '),
      (thrown: unknown) => `thrown ${asJobtailError(thrown).code}`,
    );
    const waited = this.#waits.length === 0 ? '' : `, waits of ${this.#waits.join(' and ')} ms`;
    const lists = place.remote.listings === listings + 1 ? '' : `, ${place.remote.listings - listings} listings`;
    const saved = `${this.#saved} rows saved`;
    return [
      `${step}: ${end}; requested ${this.#requested()}, ${saved}${lists}${waited}${this.#ordered()}`,
      ...this.#changed(),
    ];
  }

  #changed(): string[] {
    const [before, now] = [this.#before, this.#state];
    this.#before = { ...now, reported: '' };
    this.#reportsShown = this.place.reported.length;
    const gone = Object.keys(before).filter((name) => !(name in now));
    const changed = Object.entries(now).filter(([name, text]) => text !== (before[name] ?? ''));
    const all = [...gone.map((name) => `  ${name} is gone`), ...changed.map(([name, text]) => `  ${name}: ${text}`)];
    const lines = all.map((line) => line.replaceAll(this.place.mirror, 'MIRROR'));
    if (lines.length <= 40) return lines;
    const rows = [...this.place.store.results.ofJob(JOB)];
    const others = lines.filter((line) => /^ {2}(?:counts|reported)/.test(line)).map((line) => line.slice(0, 120));
    return [`  ${lines.length} changes, ${rows.length} rows`, ...others];
  }

  /** A second sync of what is in flux, one of a given listing, a comparison, the list of the cluster, or the end of the key. */
  async #work(word: string): Promise<string[]> {
    const { results, remote } = this.place;
    const options = { remote, isFinal: true, signal: new AbortController().signal };
    const arrived: string[] = [];
    const onFile = async ({ row }: { readonly row: ResultRow }, at: string) =>
      void arrived.push(`${row.name} ${fs.readFileSync(at).length}`);
    const works: Readonly<Record<string, () => Promise<unknown>>> = {
      again: () => results.sync(JOB, { ...options, onlyInFlux: true }),
      given: async () => results.sync(JOB, { ...options, listed: await remote.listChangedFiles() }),
      compare: () => results.bringAgain(JOB, { ...options, onFile, onIrregular: () => arrived.push('no file') }),
      cluster: () => results.listCluster(JOB, remote, options.signal),
      release: () => results.endTransfer(JOB, options),
    };
    const end = await works[word]?.().catch((thrown: Error) => thrown.message);
    const text = JSON.stringify(end, (key, value) => (key === 'tookMs' ? 0 : value));
    return [
      `${word}: ${[...arrived, text].join(', ')}; requested ${this.#requested()}${this.#ordered()}`,
      ...this.#changed(),
    ];
  }

  /** A sync a minute: those that request anything. */
  async #eachMinute(minutes: number, isFinal: boolean): Promise<string[]> {
    const found: string[] = [];
    for (let minute = 1; minute <= minutes; minute++) {
      this.place.now += 60_000;
      const outcome = await this.place.sync(isFinal).catch((thrown: unknown) => asJobtailError(thrown).code);
      const requested = this.#requested();
      const error = typeof outcome === 'string' ? ` ${outcome}` : '';
      if (requested !== '[]') found.push(`  minute ${minute}: ${requested}${error}`);
    }
    return [...found, ...this.#changed()];
  }

  /** What SSH brings, passes over, or shows to be no file. */
  #brings(settings: Ssh): ModelTransfer {
    const { contents = {}, passesOver = [], irregular = {}, together = Number.POSITIVE_INFINITY } = settings;
    this.transfer ??= new ModelTransfer(this.place);
    for (const map of [this.transfer.contents, this.transfer.irregular, this.transfer.passesOver]) map.clear();
    for (const [name, content] of Object.entries(contents)) this.transfer.contents.set(name, content);
    for (const [name, kind] of Object.entries(irregular)) this.transfer.irregular.set(name, kind);
    for (const name of passesOver) this.transfer.passesOver.add(name);
    this.transfer.together = together;
    return this.transfer;
  }

  /** A sync of another job, which has the same results. */
  async #syncOther(jobId: JobId): Promise<string[]> {
    const { store, results, remote } = this.place;
    if (store.jobs.get(jobId) === undefined) this.place.watch([], [], true, jobId);
    const { signal } = new AbortController();
    const { fetched, failed } = await results.sync(jobId, { remote, isFinal: true, signal });
    const { fallback } = store.resultSyncs.get(jobId) ?? {};
    return [
      `other ${jobId}: ${fetched} fetched, ${failed} failed, fallback ${fallback}${this.#ordered()}`,
      ...this.#changed(),
    ];
  }

  /** What a listed file has, or fails with. */
  #file(name: string, isContent: boolean, what: string): void {
    const { remote } = this.place;
    const [code, inPlace] = what.split(' ') as [ErrorCode, NoFile | undefined];
    if (!isContent)
      remote.files.set(name, new JobtailError(code, `it is ${code}\u001B[m`, inPlace === undefined ? {} : { inPlace }));
    else if (what.endsWith(' bytes')) remote.set(name, Buffer.alloc(Number.parseInt(what, 10), 'x'));
    else remote.set(name, JSON.parse(what) as string);
  }

  /** Nothing is printed of a step that only prepares. */
  async do(step: string): Promise<string[]> {
    const { place } = this;
    const { remote, store } = place;
    const [, name = '', kind, what = ''] = /^([\d/]\S*) (=|!) (.*)$/.exec(step) ?? [];
    const [word = '', first = '', ...rest] = kind === undefined ? step.split(' ') : ['file'];
    const text = rest.join(' ');
    const passes = (wallMs: number, steadyMs: number) => {
      place.now += wallMs;
      place.monotonic += steadyMs;
    };
    const ms = Number(first) * 60_000;
    const start = <Context extends { readonly rules?: object }>({ rules, ...context }: Context) =>
      void place.restarted({ ...context, rules: { ...OPTIONS, ...rules } });
    const given = <Given>() => JSON.parse(step.slice(word.length + 1) || '{}') as Given;
    const steps: Readonly<Record<string, () => unknown>> = {
      file: () => this.#file(name, kind === '=', what),
      sync: () => this.sync(step),
      final: () => this.sync(step),
      minutes: () => passes(ms, 0),
      ms: () => passes(Number(first), 0),
      pass: () => passes(ms, ms),
      steady: () => passes(0, ms),
      each: async () => {
        const minutes = await this.#eachMinute(Number(rest[0]), rest[1] === 'final');
        return [`${step}:${this.#ordered()}`, ...minutes];
      },
      gone: () => remote.files.delete(first),
      nothing: () => remote.files.clear(),
      hides: () => {
        const list = remote.listChangedFiles.bind(remote);
        remote.listChangedFiles = async () => {
          remote.listChangedFiles = list;
          return [];
        };
      },
      listed: () => remote.listedToo.push(first),
      stamp: () => remote.stamps.set(first, text),
      start: () => start(given<Partial<ResultsOptions>>()),
      ssh: () => {
        const settings = given<Ssh>();
        const way = directBy(place, this.#brings(settings), settings.wanted ?? 'auto');
        start({ ...way, minFreeBytes: settings.minFreeBytes ?? 0, rules: settings.rules ?? {} });
      },
      brings: () => this.#brings(given<Ssh>()),
      way: () => {
        const failure =
          first === 'refused' ? new KeyRefused('h') : new JobtailError(first as ErrorCode, text, { hint: 'ask them' });
        Object.assign(this.transfer ?? {}, { failure: first === 'works' ? undefined : failure });
      },
      // What a transfer leaves, that then may be stopped.
      leaves: () => {
        this.#brings({}).onFetch = (directory) => {
          fs.writeFileSync(path.join(directory, 'partial'), 'so far');
          if (first === 'stopped') this.#stop.abort();
        };
      },
      goes: () => {
        this.#stop = new AbortController();
        Object.assign(remote, { onRequest: () => {}, onPiece: () => {} });
        Object.assign(this.transfer ?? {}, { onFetch: () => {} });
      },
      // At each request, or piece of a file, a stop comes, or the service sends nothing more.
      at: () => {
        const happens: Readonly<Record<string, () => unknown>> = {
          stop: () => this.#stop.abort(),
          silence: () => Promise.reject(new JobtailError('timeout', 'h:80 sent nothing new')),
        };
        Object.assign(remote, { [first === 'piece' ? 'onPiece' : 'onRequest']: happens[text] ?? (() => {}) });
      },
      untouched: () => fs.utimesSync(place.path(first), 1, 1),
      // The service is seen to refuse the name when the file is requested.
      odd: () => {
        const refusal = new JobtailError('usage', 'this file cannot be requested: the service hands out no such name');
        const name = JSON.parse(`"${first}"`) as string;
        remote.files.set(name, refusal);
        const download = remote.downloadFile.bind(remote);
        remote.downloadFile = async (...call) => {
          if (call[1] === name) remote.reasons.set(name, refusal.message);
          return await download(...call);
        };
      },
      over: () => store.jobs.setState(JOB, 'ended'),
      other: () => this.#syncOther(first as JobId),
      // With a text: names of files, or of what is only listed.
      many: () => {
        const [before = '/11/', behind = '', how] = rest;
        const names = Array.from({ length: Number(first) }, (_, at) => `${before}${at}${behind}`);
        for (const [at, name] of names.entries()) if (how === undefined) remote.set(name, `${at}`);
        if (how !== undefined) remote.listedToo.push(...names);
      },
      'listed-are': () => {
        remote.listedToo = remote.listedToo.slice(Number(first), Number(text));
      },
      reason: () => (text === '' ? remote.reasons.delete(first) : remote.reasons.set(first, text)),
      method: () => {
        const method = first === 'as' ? (JSON.parse(text) as TransferMethod) : null;
        remote.method = first === '!' ? new JobtailError((rest[0] ?? 'fault') as ErrorCode, 'too many keys') : method;
      },
      unreached: () => Object.assign(remote, { method: null }),
      edit: () => fs.writeFileSync(place.path(first.replace('PARTIAL', partialName('0123456789abcdef'))), text),
      remove: () => fs.rmSync(place.path(first), { recursive: true }),
      mirror: () => place.live(first as LiveFileName, ...(JSON.parse(`[${text}]`) as [string, object])),
      link: () => {
        fs.rmSync(place.path(first));
        fs.symlinkSync(text, place.path(first));
      },
      row: () => {
        const row = place.row(first);
        if (row !== undefined) store.results.saveAll([{ ...row, ...(JSON.parse(text) as object) }]);
      },
      known: () => store.capabilities.set(first, text),
      off: () => place.watch([], [], false),
      forget: () => place.results.forgetJob(JOB),
    };
    const work = ['again', 'given', 'compare', 'cluster', 'release'].includes(word)
      ? () => this.#work(word)
      : steps[word];
    if (work === undefined) throw new Error(`no step: ${step}`);
    const result = await work();
    return Array.isArray(result) ? (result as string[]) : [];
  }
}

/** What the steps of a file of cases lead to. */
export async function played(written: string): Promise<string[]> {
  const story = new ResultsStory();
  const result: string[] = [];
  for (const step of written.split('; ')) result.push(...(await story.do(expanded(step.replaceAll('%3B', ';')))));
  return result;
}
