/** Gathers what the live files of a poll wait for: one call carries it all when each active file waits. */
import { JobtailError } from '../../errors.ts';
import type { BytesRequest, LiveAnswers } from '../ports/server.ts';

/** What a file waits for. Both reject with `aborted` if the poll fails meanwhile. */
export interface FileWaits {
  /** The next call, which carries this request. The file releases its answer. */
  load(request: BytesRequest): Promise<LiveAnswers>;
  /** That each other file waits as well, and what was appended is committed; then one file goes on at a time. */
  waitForCommit(): Promise<void>;
}

interface LoaderOptions {
  readonly send: (wanted: readonly BytesRequest[], isFirst: boolean) => Promise<LiveAnswers>;
  /** Commits what was appended so far. */
  readonly commit: () => Promise<void>;
}

interface WaitingRead<Value> {
  readonly resume: (value: Value) => void;
  readonly fail: (error: Error) => void;
}

/** Follows the files. Rejects, after each file has ended, with the first failure that ends the poll. */
export async function followAll(
  files: readonly { follow(waits: FileWaits): Promise<void> }[],
  { send, commit }: LoaderOptions,
): Promise<void> {
  const loading: (WaitingRead<LiveAnswers> & { readonly request: BytesRequest })[] = [];
  const committing: WaitingRead<void>[] = [];
  const failures: unknown[] = [];
  let active = files.length;
  let onAllWait = () => {};
  const becomeIdle = () => {
    active -= 1;
    if (active === 0) onAllWait();
  };
  const wait = <Value>(add: (one: WaitingRead<Value>) => void) =>
    new Promise<Value>((resume, fail) => {
      if (failures.length > 0) return fail(ended());
      add({ resume, fail });
      becomeIdle();
    });
  const waits: FileWaits = {
    load: (request) => wait((one) => loading.push({ ...one, request })),
    waitForCommit: () => wait((one) => committing.push(one)),
  };
  const followed = files.map((file) =>
    file
      .follow(waits)
      .catch((error: unknown) => failures.push(error))
      .finally(becomeIdle),
  );
  for (let isFirst = true; ; isFirst = false) {
    if (active > 0) await new Promise<void>((resolve) => (onAllWait = resolve));
    if (failures.length > 0 || loading.length + committing.length === 0) break;
    try {
      if (loading.length > 0) {
        const wanted = loading.map(({ request }) => request);
        const answers = await send(wanted, isFirst);
        active = loading.length;
        for (const { resume } of loading.splice(0)) resume(answers);
      } else {
        await commit();
        active = 1;
        committing.shift()?.resume();
      }
    } catch (error) {
      failures.push(error);
    }
  }
  for (const { fail } of [...loading, ...committing]) fail(ended());
  await Promise.all(followed);
  if (failures.length > 0) throw failures[0];
}

const ended = () => new JobtailError('aborted', 'the poll failed');
