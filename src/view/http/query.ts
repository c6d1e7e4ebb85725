/** Parses the query of a request. */

import { Refused } from '../../http/refused.ts';
import { isLiveFileName, type JobId, type LiveFileKey, parseJobId, parseTaskId } from '../../job.ts';
import { type ContentName, liveFileOf } from '../content/contents.ts';

const MAX_NAME = 4096;
/** `g3`, or the inode and the time of a file. */
const VERSION = /^(?:g[0-9]{1,16}|[fr][0-9]{1,20}-[0-9]{1,20})$/;

export class Query {
  readonly #parameters: URLSearchParams;

  constructor(url: string) {
    this.#parameters = new URL(url).searchParams;
  }

  text(name: string): string | undefined {
    const text = this.#parameters.get(name) ?? undefined;
    if (text !== undefined && text.length > MAX_NAME) throw wrong(name);
    return text;
  }

  flag(name: string): boolean {
    return this.#parameters.get(name) === '1';
  }

  all(name: string, max: number): string[] {
    const found = this.#parameters.getAll(name);
    if (found.length > max) throw new Refused(400, `at most ${max} of ${name}`);
    return [...new Set(found)];
  }

  number(name: string): number | undefined {
    const text = this.#parameters.get(name);
    if (text === null) return undefined;
    const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(number)) throw wrong(name);
    return number;
  }

  job(): JobId {
    return this.#required('job', parseJobId);
  }

  live(): LiveFileKey {
    return { taskId: this.#required('task', parseTaskId), file: this.#required('file', liveName) };
  }

  content(): ContentName {
    const jobId = this.job();
    const version = this.text('version');
    if (version !== undefined && !VERSION.test(version)) throw wrong('version');
    const result = this.text('result');
    return result === undefined ? { jobId, version, live: this.live() } : { jobId, version, result };
  }

  /** Live files as `501/9001/stdout`. */
  liveFiles(max: number): { readonly jobId: JobId; readonly live: LiveFileKey }[] {
    return this.all('file', max).map((text) => {
      const slash = text.indexOf('/');
      const jobId = parseJobId(text.slice(0, slash));
      const live = liveFileOf(text.slice(slash + 1));
      if (jobId === undefined || live === undefined) throw wrong('file');
      return { jobId, live };
    });
  }

  jobs(max: number): JobId[] {
    return this.all('job', max).map((text) => {
      const jobId = parseJobId(text);
      if (jobId === undefined) throw wrong('job');
      return jobId;
    });
  }

  #required<T>(name: string, parse: (text: string) => T | undefined): T {
    const value = parse(this.#parameters.get(name) ?? '');
    if (value === undefined) throw wrong(name);
    return value;
  }
}

const liveName = (text: string) => (isLiveFileName(text) ? text : undefined);
const wrong = (name: string) => new Refused(400, `${name} is missing, or is none`);
