/** Gathers what the live files of a poll wait for: one call carries it all when each active file waits. */
import type { PartRequest } from '../ports.ts';
import type { Batch } from './batch.ts';

/** A live file that is followed. */
export interface LoadedFile {
  /** Rejects with a failure that ends the poll, or with the `PollEnded` that it received. */
  follow(waits: FileWaits): Promise<void>;
  /** Takes its part of the responses; from now on it releases that part. */
  take(batch: Batch): void;
}

/** What a file waits for. Both reject with PollEnded if the poll fails meanwhile. */
export interface FileWaits {
  /** The next call, which carries this request. */
  load(request: PartRequest): Promise<Batch>;
  /** That each other file waits as well, and what was appended is committed. */
  settle(): Promise<void>;
}

/** The poll failed while a file waited; the file is not the cause. */
export class PollEnded extends Error {}

export interface LoaderOptions {
  readonly send: (wanted: readonly PartRequest[], begins: boolean) => Promise<Batch>;
  /** Commits what was appended so far. */
  readonly commit: () => Promise<void>;
}

interface Wait<Value> {
  readonly file: LoadedFile;
  readonly resume: (value: Value) => void;
  readonly end: () => void;
}

/**
 * Follows the files, one at a time until it ends or waits, and sends what they wait for. Rejects with the first failure
 * that ends the poll, after each file has ended.
 */
export async function followAll(files: readonly LoadedFile[], { send, commit }: LoaderOptions): Promise<void> {
  let loading: (Wait<Batch> & { readonly request: PartRequest })[] = [];
  let settling: Wait<void>[] = [];
  let failure: { readonly error: unknown } | undefined;
  let pause = () => {};
  const untilItPauses = (go: () => void) =>
    new Promise<void>((resolve) => {
      pause = resolve;
      go();
    });
  const waitsOf = (file: LoadedFile): FileWaits => {
    const wait = <Value>(add: (one: Wait<Value>) => void) =>
      new Promise<Value>((resume, reject) => {
        const end = () => reject(new PollEnded());
        if (failure === undefined) add({ file, resume, end });
        else end();
        pause();
      });
    return {
      load: (request) => wait((one) => loading.push({ ...one, request })),
      settle: () => wait((one) => settling.push(one)),
    };
  };
  const follow = async (file: LoadedFile) => {
    await file.follow(waitsOf(file)).catch((error: unknown) => {
      failure ??= { error };
    });
    pause();
  };
  const followed: Promise<void>[] = [];
  for (const file of files) if (failure === undefined) await untilItPauses(() => followed.push(follow(file)));
  for (let begins = true; failure === undefined && loading.length + settling.length > 0; begins = false) {
    const round = loading;
    const settled = round.length > 0 ? [] : settling;
    loading = [];
    if (round.length === 0) settling = [];
    try {
      if (round.length === 0) await commit();
      else {
        const batch = await send(
          round.map(({ request }) => request),
          begins,
        );
        for (const { file } of round) file.take(batch);
        for (const { resume } of round) if (failure === undefined) await untilItPauses(() => resume(batch));
      }
      for (const { resume } of settled) if (failure === undefined) await untilItPauses(() => resume());
    } catch (error) {
      failure = { error };
    }
    if (failure !== undefined) for (const { end } of [...round, ...settled]) end();
  }
  for (const { end } of [...loading, ...settling]) end();
  await Promise.all(followed);
  if (failure !== undefined) throw failure.error;
}
