/** The body of an answer that is made while it is sent: the next piece when the one before was taken. */

export interface BodyOptions {
  /** Called once, however it ends: also if nobody ever takes a piece, as when the page went before the answer began. */
  readonly end: () => void;
  /** It cannot go on, and what was sent is not all: the connection is to break off. */
  readonly broken: (error: unknown) => void;
}

export function bodyOf(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { end, broken }: BodyOptions,
): ReadableStream {
  const iterator = iteratorOf(pieces);
  let isOver = false;
  const endOnce = () => {
    if (!isOver) end();
    isOver = true;
  };
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done = false, value } = await iterator.next();
          if (!done) return controller.enqueue(value);
        } catch (error) {
          // What was cancelled ends anyhow.
          if (!isOver) broken(error);
        }
        endOnce();
        controller.close();
      },
      async cancel() {
        endOnce();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function iteratorOf<Item>(items: AsyncIterable<Item> | Iterable<Item>): AsyncIterator<Item> | Iterator<Item> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Values as lines of JSON. */
export async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`);
}
