/** Bodies of responses that are made while they are sent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpContext } from './app.ts';
import { Refused } from './refused.ts';

interface FailureListener {
  readonly onFailure: (error: unknown) => void;
}

interface StreamedOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Called however it ends: also if the page goes before the first piece. */
  readonly end: () => void;
}

/** Makes each piece when the one before was taken. A failure breaks the connection: no part looks like all. */
export function streamed(
  { onFailure }: FailureListener,
  { env }: HttpContext,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { headers, end }: StreamedOptions,
): Response {
  const iterator = Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  let isCancelled = false;
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done = false, value } = await iterator.next();
        if (!done) return controller.enqueue(value);
      } catch (error) {
        // What was cancelled ends anyhow.
        if (!isCancelled && !(error instanceof Refused)) onFailure(error);
        if (!isCancelled) env.outgoing.destroy();
      }
      end();
      controller.close();
    },
    async cancel() {
      isCancelled = true;
      end();
      await iterator.return?.();
    },
  };
  const body = new ReadableStream(source, { highWaterMark: 0 });
  return new Response(body, { headers: { 'cache-control': 'no-store', ...headers } });
}

export async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`);
}

/** Each stream of news looks so often at what it is about. */
const TICK_MS = 100;
/** Keeps an idle stream open, and detects a client that is gone. */
export const HEARTBEAT_MS = 15_000;

/** Lines of JSON until it is over. A slow client gets them together: news is read when the last ones were sent. */
export async function* newsLines(news: () => readonly unknown[], over: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let sentAt = Number.NEGATIVE_INFINITY; !over.aborted; await sleep(TICK_MS)) {
    const lines = news().map((each) => `${JSON.stringify(each)}\n`);
    if (lines.length === 0 && performance.now() - sentAt < HEARTBEAT_MS) continue;
    yield Buffer.from(lines.join('') || '\n');
    sentAt = performance.now();
  }
}
