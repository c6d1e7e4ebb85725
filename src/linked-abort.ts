/**
 * An AbortController that fires with the signal of the caller, too, until it is released. Not AbortSignal.any: that one
 * is kept alive by a long-lived signal of the caller for as long as the program runs.
 */
export class LinkedAbort extends AbortController {
  readonly #caller: AbortSignal;
  readonly #onAbort = () => this.abort(this.#caller.reason);

  constructor(caller: AbortSignal) {
    super();
    this.#caller = caller;
    if (caller.aborted) this.#onAbort();
    else caller.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** The work is over: nothing of it stays with the caller's signal. */
  release(): void {
    this.#caller.removeEventListener('abort', this.#onAbort);
  }
}
