/** The body of an answer that is made while it is sent: the next piece when the one before was taken. */

/**
 * `end` is called once, however it ends: also if nobody ever takes a piece, as when the page went before the answer began.
 */
export function bodyOf(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, end: () => void): ReadableStream {
  const iterator = iteratorOf(pieces);
  let isOver = false;
  let isCancelled = false;
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
          endOnce();
          controller.close();
        } catch (error) {
          endOnce();
          // One that was cancelled has nobody to be told.
          if (!isCancelled) controller.error(error);
        }
      },
      async cancel() {
        isCancelled = true;
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
