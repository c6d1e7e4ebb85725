/** Gathers what the live files of a poll wait for: one call carries it all when each active file waits. */
import type { PartRequest } from '../ports.ts';
import type { Batch } from './batch.ts';

/** A live file that is followed. */
export interface LoadedFile {
  /** Rejects with a failure that ends the poll, or with the `PollEnded` that it received. */
  follow(load: Load): Promise<void>;
  /** Takes its part of the responses; from now on it releases that part. */
  take(batch: Batch): void;
}

/** Requests a part in the next call. Rejects with PollEnded if the poll fails meanwhile. */
export type Load = (request: PartRequest) => Promise<Batch>;

/** The poll failed while a file waited; the file is not the cause. */
export class PollEnded extends Error {}

interface Wait {
  readonly file: LoadedFile;
  readonly request: PartRequest;
  readonly resume: (batch: Batch) => void;
  readonly end: () => void;
}

/**
 * Follows the files, one at a time until it ends or waits, and sends what they wait for. Rejects with the first failure
 * that ends the poll, after each file has ended.
 */
export async function followAll(
  files: readonly LoadedFile[],
  send: (wanted: readonly PartRequest[], begins: boolean) => Promise<Batch>,
): Promise<void> {
  let waiting: Wait[] = [];
  let failure: { readonly error: unknown } | undefined;
  let pause = () => {};
  const untilItPauses = (go: () => void) =>
    new Promise<void>((resolve) => {
      pause = resolve;
      go();
    });
  const follow = async (file: LoadedFile) => {
    const load: Load = (request) =>
      new Promise((resume, reject) => {
        const end = () => reject(new PollEnded());
        if (failure === undefined) waiting.push({ file, request, resume, end });
        else end();
        pause();
      });
    await file.follow(load).catch((error: unknown) => {
      failure ??= { error };
    });
    pause();
  };
  const followed: Promise<void>[] = [];
  for (const file of files) if (failure === undefined) await untilItPauses(() => followed.push(follow(file)));
  for (let begins = true; waiting.length > 0 && failure === undefined; begins = false) {
    const round = waiting;
    waiting = [];
    try {
      const batch = await send(
        round.map(({ request }) => request),
        begins,
      );
      for (const { file } of round) file.take(batch);
      for (const { resume } of round) if (failure === undefined) await untilItPauses(() => resume(batch));
    } catch (error) {
      failure = { error };
    }
    if (failure !== undefined) for (const { end } of round) end();
  }
  for (const { end } of waiting) end();
  await Promise.all(followed);
  if (failure !== undefined) throw failure.error;
}
