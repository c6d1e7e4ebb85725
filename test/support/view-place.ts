/** A view that serves real mirrors and a real store over real HTTP, in this process; gone with the test. */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import type { JobInformation } from '../../src/job-information.ts';
import { liveParts, resultPath, resultsParts } from '../../src/safe-names.ts';
import type { LiveFileRow, ResultRow } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import type { Events } from '../../src/view/contract/events.ts';
import type { Figures } from '../../src/view/events/figures.ts';
import { type RunningView, serveView } from '../../src/view/serve.ts';
import type { ViewSettings } from '../../src/view/settings.ts';
import { readToken } from '../../src/view/token.ts';
import { until } from './e2e-until.ts';
import { newState } from './engine.ts';
import { NEW_RESULT, NEW_ROW } from './live-place.ts';
import { temporaryDirectory } from './temp-directory.ts';

export const JOB = '501' as JobId;
export const TASK = '9001' as TaskId;
export const STDOUT = `job=${JOB}&task=${TASK}&file=stdout`;

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export interface AskOptions {
  /** Laid over what a program with the token sends. */
  readonly headers?: Readonly<Record<string, string | null | undefined>>;
  readonly method?: string;
}

export class ViewPlace {
  readonly directory: string;
  readonly mirrors: string;
  readonly store: Store;
  readonly settings: ViewSettings;
  /** What it said that should not happen. */
  readonly failures: unknown[] = [];
  #view: RunningView | undefined;
  #token = '';

  private constructor(directory: string, settings: Partial<ViewSettings>) {
    this.directory = directory;
    this.mirrors = path.join(directory, 'mirror');
    const stateDirectory = newState(path.join(directory, 'state'));
    fs.mkdirSync(this.mirrors);
    this.store = new Store({ directory: stateDirectory, service: 'http://service', owner: true, now: Date.now });
    this.settings = {
      ...{
        mirrorDirectory: this.mirrors,
        errorPatterns: null,
        stateDirectory,
        publicUrl: null,
        tokenFile: null,
        agentPid: null,
      },
      service: {
        ...{
          address: 'http://service',
          protocol: 'soap',
          hasJobService: false,
          concurrency: 4,
          requestsPerMinute: 600,
        },
      },
      listen: { host: '127.0.0.1', port: 0 },
      program: '1.2.3',
      ...settings,
    };
  }

  static async serve(settings: Partial<ViewSettings> = {}, figures: Figures | null = null) {
    const place = new ViewPlace(temporaryDirectory(), settings);
    onTestFinished(async () => {
      await place.#view?.close();
      place.store.close();
    });
    await place.start(figures);
    return place;
  }

  /** The same, with a job whose stdout has a content. */
  static async withJob(stdout: string | Buffer = '', settings: Partial<ViewSettings> = {}) {
    const place = await ViewPlace.serve(settings);
    place.addJob();
    place.write('stdout', stdout);
    return place;
  }

  async start(figures: Figures | null = null): Promise<void> {
    const onFailure = (error: unknown) => this.failures.push(error);
    this.#view = await serveView({ settings: this.settings, fleet: null, figures, onFailure, readEveryMs: 50 });
    this.#token = readToken(path.join(this.settings.stateDirectory, 'view-token')) ?? '';
  }

  get view(): RunningView {
    if (this.#view === undefined) throw new Error('it does not serve');
    return this.#view;
  }

  get token(): string {
    return this.#token;
  }

  /** A watched job with the four live files of one task, which are empty. */
  addJob(jobId = JOB, taskId = TASK): void {
    const order = { jobId, tasks: [taskId], files: ['stdout', 'stderr', 'log', 'progress'] as LiveFileName[] };
    this.store.jobs.watch({ ...order, results: true, settleAfterMs: null, source: 'command' }, Date.now());
    for (const file of order.files) this.write(file, '', jobId, taskId);
  }

  mirrorOf(file: LiveFileName = 'stdout', jobId = JOB, taskId = TASK): string {
    return path.join(this.mirrors, ...liveParts(jobId, { taskId, file }));
  }

  /** Puts content into a mirror. */
  write(file: LiveFileName, content: string | Buffer, jobId = JOB, taskId = TASK): string {
    const mirror = this.mirrorOf(file, jobId, taskId);
    fs.mkdirSync(path.dirname(mirror), { recursive: true });
    fs.writeFileSync(mirror, content);
    this.commit(file, { position: Buffer.byteLength(content) }, jobId, taskId);
    return mirror;
  }

  /** Commits a row of a live file, as the agent does. */
  commit(file: LiveFileName, row: Partial<LiveFileRow>, jobId = JOB, taskId = TASK): void {
    const before = this.store.liveFiles.get(jobId, { taskId, file });
    this.store.liveFiles.save({ ...NEW_ROW, jobId, taskId, file, ...before, ...row });
  }

  /** What the middleware reports of a job. */
  report(jobId: JobId, information: Partial<JobInformation>): void {
    const unknown = { name: null, state: null, creationTime: null, submitTime: null, startTime: null, endTime: null };
    const now = Date.now();
    this.store.jobInformation.save({
      ...{ jobId, since: now, reportedAt: now },
      information: { ...unknown, id: jobId, tasks: [], ...information },
    });
  }

  /** The remote file was rewritten: in the steps of the agent, each in a `commit` of its own. */
  rewrite(file: LiveFileName, content: string): void {
    const mirror = this.mirrorOf(file);
    const row = this.store.liveFiles.ofJob(JOB).find((each) => each.file === file);
    fs.copyFileSync(mirror, `${mirror}.keeping`);
    this.commit(file, { rotation: 'copied', position: 0 });
    for (let number = 4; number >= 1; number--)
      if (fs.existsSync(`${mirror}.${number}`)) fs.renameSync(`${mirror}.${number}`, `${mirror}.${number + 1}`);
    fs.renameSync(`${mirror}.keeping`, `${mirror}.1`);
    fs.truncateSync(mirror, 0);
    this.commit(file, { rotation: null, generation: (row?.generation ?? 1) + 1 });
    fs.appendFileSync(mirror, content);
    this.commit(file, { position: Buffer.byteLength(content) });
  }

  /** A result as the agent keeps it; without content there is a row alone. */
  addResult(name: string, content?: string | Buffer, row: Partial<ResultRow> = {}): void {
    const at = resultPath(name);
    if (content !== undefined && 'parts' in at) {
      const file = path.join(this.mirrors, ...resultsParts(JOB), ...at.parts);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(`${file}.new`, content);
      fs.renameSync(`${file}.new`, file);
    }
    const state = content === undefined ? 'listed' : 'synced';
    const bytes = content === undefined ? null : Buffer.byteLength(content);
    const fetchedAt = content === undefined ? null : 1;
    this.store.results.saveAll([{ ...NEW_RESULT, jobId: JOB, name, state, bytes, fetchedAt, ...row }]);
  }

  /** One request, with the token unless the headers say otherwise; `target` is sent as it is. */
  ask(target: string, { headers = {}, method = 'GET' }: AskOptions = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.request(target, { headers, method }, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => {
          const body = Buffer.concat(pieces);
          const { statusCode: status = 0 } = response;
          resolve({ status, headers: response.headers, body, text: body.toString('utf8') });
        });
      }).on('error', reject);
    });
  }

  /** The answer as JSON. */
  async json<T>(target: string): Promise<T> {
    const { status, text } = await this.ask(target);
    if (status !== 200) throw new Error(`${target}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** The answer as lines of JSON. */
  async lines<T>(target: string): Promise<T[]> {
    const { status, text } = await this.ask(target);
    if (status !== 200) throw new Error(`${target}: ${status} ${text}`);
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as T);
  }

  request(
    target: string,
    { headers = {}, method = 'GET' }: AskOptions,
    onResponse: (response: http.IncomingMessage) => void,
  ): http.ClientRequest {
    const all: Record<string, string | null | undefined> = { authorization: `Bearer ${this.#token}`, ...headers };
    const sent = Object.fromEntries(
      Object.entries(all).flatMap(([name, value]) => (value == null ? [] : [[name, value]])),
    );
    const request = http.request(
      { host: '127.0.0.1', port: this.view.port, path: target, method, headers: sent, agent: false },
      onResponse,
    );
    request.end();
    return request;
  }

  /** Opens a stream of events; it is closed with the test. */
  look(query: string): EventReader {
    const reader = new EventReader();
    const request = this.request(`/api/events?${query}`, {}, (response) => {
      response.on('data', (piece: Buffer) => reader.take(piece.toString('utf8')));
      response.on('error', () => {});
    });
    request.on('error', () => {});
    reader.close = () => void request.destroy();
    onTestFinished(() => reader.close());
    return reader;
  }
}

class EventReader {
  close: () => void = () => {};
  #text = '';
  readonly seen: (readonly [name: string, data: unknown])[] = [];

  take(text: string): void {
    this.#text += text;
    const lines = this.#text.split('\n');
    this.#text = lines.pop() ?? '';
    for (const line of lines) if (line !== '') this.seen.push(JSON.parse(line) as [string, unknown]);
  }

  /** Everything of this name so far. */
  all<Name extends keyof Events>(name: Name): Events[Name][] {
    return this.seen.filter(([seen]) => seen === name).map(([, data]) => data as Events[Name]);
  }

  /** The last event of this name, as soon as it is so. */
  until<Name extends keyof Events>(
    name: Name,
    isSo: (data: Events[Name]) => boolean = () => true,
  ): Promise<Events[Name]> {
    return until(`the event ${name}`, () => {
      const last = this.all(name).at(-1);
      return last !== undefined && isSo(last) ? (last as Exclude<Events[Name], undefined | false>) : undefined;
    }) as Promise<Events[Name]>;
  }
}
