/**
 * A middleware that costs as little as can be: one process that answers DownloadPartsOfJobFilesFromCluster with text out
 * of a buffer, for any job and task. All files of a kind have the same content, and grow by the clock alone, so when each
 * byte arrived can be calculated. Its processor time counts for no side.
 *
 *     node middleware.js '{"fileBytes": 3000, "growingBytesPerSecond": 0}'
 *
 * It prints its port; GET /figures tells what it was asked, and GET /reset forgets that. stdout.log grows; the other three files stay as they are.
 */
import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { actionOf } from '../src/remote/soap/contract.ts';
import { LINE_BYTES, textOf } from './growth.ts';
import { NAMESPACE } from './service/job.ts';

export interface MiddlewareSetting {
  /** Bytes of each file at the beginning. */
  readonly fileBytes: number;
  /** What a stdout grows by, in whole lines; 0 for quiet jobs. */
  readonly growingBytesPerSecond: number;
}

/** What it was asked; times are wall-clock milliseconds. */
export interface MiddlewareFigures {
  readonly calls: number;
  readonly firstCallAt: number | null;
  /** Jobs that were asked for at least once, and the longest time between two calls for one of them. */
  readonly jobs: number;
  readonly longestGapMs: number;
}

export const SESSION = 'a-session';

const START =
  '<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope"' +
  ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soap:Body>' +
  `<DownloadPartsOfJobFilesFromClusterResponse xmlns="${NAMESPACE}"><DownloadPartsOfJobFilesFromClusterResult>`;
const END =
  '</DownloadPartsOfJobFilesFromClusterResult></DownloadPartsOfJobFilesFromClusterResponse></soap:Body></soap:Envelope>';
/** In the order in which the agent asks. */
export const FILE_TYPES = ['StandardOutputFile', 'StandardErrorFile', 'LogFile', 'ProgressFile'];
const PATHS: Readonly<Record<string, string>> = {
  StandardOutputFile: '/stdout.txt',
  StandardErrorFile: '/stderr.txt',
  LogFile: '/task.log',
  ProgressFile: '/progress.txt',
};
const ENTRY =
  /submittedTaskInfoId>(\d+)<\/[^>]*submittedTaskInfoId><[^>]*fileType>(\w+)<\/[^>]*fileType><[^>]*offset>(\d+)</g;
const JOB = /submittedJobInfoId>(\d+)</;

class Middleware {
  readonly #setting: MiddlewareSetting;
  readonly #startedAt: number;
  #calls = 0;
  #firstCallAt: number | null = null;
  #longestGapMs = 0;
  readonly #lastCallOf = new Map<string, number>();

  constructor(setting: MiddlewareSetting, startedAt: number) {
    this.#setting = setting;
    this.#startedAt = startedAt;
  }

  answer(request: string): string {
    this.#note(JOB.exec(request)?.[1] ?? '');
    let entries = '';
    for (const [, task = '', type = '', offset] of request.matchAll(ENTRY)) {
      const length = this.#lengthOf(type);
      const text = textOf(Number(offset), length);
      entries +=
        `<JobFileContentExt><content>${text}</content><relativePath>${PATHS[type]}</relativePath>` +
        `<offset>${offset}</offset><fileType>${type}</fileType><submittedTaskInfoId>${task}</submittedTaskInfoId>` +
        '</JobFileContentExt>';
    }
    return START + entries + END;
  }

  get figures(): MiddlewareFigures {
    return {
      calls: this.#calls,
      firstCallAt: this.#firstCallAt,
      jobs: this.#lastCallOf.size,
      longestGapMs: this.#longestGapMs,
    };
  }

  /** What is asked from now on counts. */
  reset(): void {
    this.#calls = 0;
    this.#firstCallAt = null;
    this.#longestGapMs = 0;
    this.#lastCallOf.clear();
  }

  #note(job: string): void {
    const now = performance.timeOrigin + performance.now();
    this.#calls += 1;
    this.#firstCallAt ??= now;
    const last = this.#lastCallOf.get(job);
    if (last !== undefined) this.#longestGapMs = Math.max(this.#longestGapMs, now - last);
    this.#lastCallOf.set(job, now);
  }

  #lengthOf(type: string): number {
    const { fileBytes, growingBytesPerSecond } = this.#setting;
    if (type !== 'StandardOutputFile') return fileBytes;
    const grown = ((performance.timeOrigin + performance.now() - this.#startedAt) / 1000) * growingBytesPerSecond;
    return fileBytes + Math.floor(grown / LINE_BYTES) * LINE_BYTES;
  }
}

async function serve(setting: MiddlewareSetting): Promise<void> {
  const startedAt = performance.timeOrigin + performance.now();
  const middleware = new Middleware(setting, startedAt);
  const server = http.createServer((request, response) => {
    if (request.method === 'GET') {
      if (request.url === '/reset') middleware.reset();
      response.end(JSON.stringify(middleware.figures));
      return;
    }
    const pieces: Buffer[] = [];
    request.on('data', (bytes: Buffer) => pieces.push(bytes));
    request.on('end', () => {
      const body = Buffer.from(middleware.answer(Buffer.concat(pieces).toString('latin1')), 'latin1');
      response.writeHead(200, { 'content-type': 'application/soap+xml; charset=utf-8', 'content-length': body.length });
      response.end(body);
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('it has no port');
    process.stdout.write(`${JSON.stringify({ port: address.port })}\n`);
  });
  process.once('SIGTERM', () => process.exit(0));
}

/** The action of the one operation that it answers. */
export const ACTION = actionOf(NAMESPACE, 'DownloadPartsOfJobFilesFromCluster');

const [, script, setting] = process.argv;
if (script !== undefined && import.meta.filename === script && setting !== undefined)
  await serve(JSON.parse(setting) as MiddlewareSetting);
