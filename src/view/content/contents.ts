/** The files that the view can open: live mirrors, their former generations, and results. */
import fs from 'node:fs';
import { changed, notThere } from '../../http/refused.ts';
import { isLiveFileName, type JobId, type LiveFileKey, parseTaskId } from '../../job.ts';
import { beginsGeneration } from '../../mismatch.ts';
import { formerNumbers, liveParts, resultPath, resultsParts } from '../../safe-names.ts';
import type { ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Generations } from '../contract/addresses.ts';
import { namesBelow, openBelow } from './below.ts';
import { FileContent } from './content.ts';

/** A file of a job as a request names it, with the version that it wants. */
export type ContentName =
  | { readonly jobId: JobId; readonly live: LiveFileKey; readonly version: string | undefined }
  | { readonly jobId: JobId; readonly result: string; readonly version: string | undefined };

export class Contents {
  readonly #root: string;
  readonly #storeOf: (jobId: JobId) => Store;

  /** `root` is the mirror directory. */
  constructor(root: string, storeOf: (jobId: JobId) => Store) {
    this.#root = root;
    this.#storeOf = storeOf;
  }

  /** @throws Refused (404, 409) */
  open(name: ContentName): FileContent {
    if ('live' in name) return this.#openLive(name.jobId, name.live, name.version);
    const row = this.#storeOf(name.jobId).results.get(name.jobId, name.result);
    if (row === undefined || row.state === 'refused') throw notThere('result of this name');
    // Such a result is a link to a mirror. No link is followed, so the mirror is opened.
    const live = row.live === null ? undefined : liveFileOf(row.live);
    if (live !== undefined) return this.#openLive(name.jobId, live, name.version);
    return this.#openResult(row, name.version);
  }

  /** The version of the present mirror; undefined if the store has no such live file. */
  versionOf(jobId: JobId, live: LiveFileKey): string | undefined {
    const generation = this.#storeOf(jobId).liveFiles.generation(jobId, live);
    return generation === undefined ? undefined : `g${generation}`;
  }

  /** @throws Refused (404) */
  generations(jobId: JobId, live: LiveFileKey): Generations {
    const now = this.versionOf(jobId, live);
    if (now === undefined) throw notThere('live file of this name');
    const row = this.#storeOf(jobId).liveFiles.get(jobId, live);
    const former = this.#formerNames(jobId, live).flatMap((name) => {
      const content = this.#openFormer(jobId, live, name);
      if (content === undefined) return [];
      content.close();
      const generation = (row?.generation ?? 0) - Number(name.split('.').at(-1));
      return [{ version: content.version, generation, bytes: content.bytes }];
    });
    const began = (row?.mismatches ?? [])
      .filter(beginsGeneration)
      .map(({ generation, at, reason }) => ({ generation, at, reason }));
    return { now, former, began };
  }

  #openLive(jobId: JobId, live: LiveFileKey, version: string | undefined): FileContent {
    const now = this.versionOf(jobId, live);
    if (now === undefined) throw notThere('live file of this name');
    for (const name of version?.startsWith('f') ? this.#formerNames(jobId, live) : []) {
      const former = this.#openFormer(jobId, live, name);
      if (former === undefined) continue;
      if (former.version === version) return former;
      former.close();
    }
    if (version !== undefined && version !== now) throw changed(now);
    const file = openBelow(this.#root, liveParts(jobId, live));
    if (file === undefined) throw notThere('mirror of this name');
    const versionNow = () => this.versionOf(jobId, live) ?? '';
    return new FileContent(file, now, `${jobId}-${live.taskId}-${live.file}.log`, versionNow);
  }

  /** `stdout.log.1`, `.2`, ...: the youngest first. */
  #formerNames(jobId: JobId, live: LiveFileKey): string[] {
    const parts = liveParts(jobId, live);
    const mirror = parts.at(-1) ?? '';
    const numbers = formerNumbers(namesBelow(this.#root, parts.slice(0, -1)), mirror);
    return numbers.map((number) => `${mirror}.${number}`);
  }

  #openFormer(jobId: JobId, live: LiveFileKey, name: string): FileContent | undefined {
    const file = openBelow(this.#root, [...liveParts(jobId, live).slice(0, -1), name]);
    if (file === undefined) return undefined;
    const version = versionOfFile('f', file);
    return new FileContent(file, version, `${jobId}-${live.taskId}-${name}`);
  }

  #openResult({ jobId, name }: ResultRow, version: string | undefined): FileContent {
    const path = resultPath(name);
    const file = 'refused' in path ? undefined : openBelow(this.#root, [...resultsParts(jobId), ...path.parts]);
    if (file === undefined) throw notThere('file of this result yet');
    const now = versionOfFile('r', file);
    if (version === undefined || version === now) return new FileContent(file, now, name.split('/').at(-1) ?? name);
    fs.closeSync(file);
    throw changed(now);
  }
}

/** The version of a file that is replaced, but never overwritten: a former generation, or a result. */
function versionOfFile(kind: 'f' | 'r', file: number): string {
  const { ino, mtimeNs } = fs.fstatSync(file, { bigint: true });
  return `${kind}${ino}-${mtimeNs}`;
}

/** `9001/stdout`, as `keyText` writes it. */
export function liveFileOf(text: string): LiveFileKey | undefined {
  const [task = '', file = '', ...more] = text.split('/');
  const taskId = parseTaskId(task);
  return taskId !== undefined && isLiveFileName(file) && more.length === 0 ? { taskId, file } : undefined;
}
