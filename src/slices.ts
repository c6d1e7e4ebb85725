/** Long work on many small things, in slices: everything else of the process gets its turn in between. */

const SLICE_MS = 5;

/** The items one after the other; the next one waits for the others once the slice is over. */
export function inSlices<Item>(items: Iterable<Item>): AsyncIterable<Item> | Iterable<Item> {
  // A generator takes longer than the work on one item.
  return Array.isArray(items) && items.length <= 1 ? items : sliced(items);
}

async function* sliced<Item>(items: Iterable<Item>): AsyncGenerator<Item, void> {
  let beganAt = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - beganAt < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    beganAt = performance.now();
  }
}

export function slicesOf<Item>(items: readonly Item[], max: number): Item[][] {
  const slices: Item[][] = [];
  const size = Math.min(max, Math.max(1, items.length));
  for (let start = 0; start < items.length; start += size) slices.push(items.slice(start, start + size));
  return slices;
}
