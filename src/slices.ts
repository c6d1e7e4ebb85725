/** Long work on many small things, in slices: everything else of the process gets its turn in between. */

const SLICE_MS = 5;

export class Slices {
  #beganAt = performance.now();

  /** Call it after each small thing: it waits for the others once the slice is over. */
  async next(): Promise<void> {
    if (performance.now() - this.#beganAt < SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#beganAt = performance.now();
  }
}
