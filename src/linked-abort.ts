/**
 * An AbortController that fires with the signal of the caller, too, until it is released. Not AbortSignal.any: that one
 * is kept alive by a long-lived signal of the caller for as long as the program runs. And Node.js 20 collects an
 * AbortSignal.timeout in it as garbage before it fires.
 */
export class LinkedAbort extends AbortController {
  readonly #caller: AbortSignal;
  readonly #onAbort: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `reasonOf` makes the reason out of the caller's, which is taken as it is if left out. */
  constructor(caller: AbortSignal, reasonOf: (reason: unknown) => unknown = (reason) => reason) {
    super();
    this.#caller = caller;
    this.#onAbort = () => this.abort(reasonOf(caller.reason));
    if (caller.aborted) this.#onAbort();
    else caller.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Fires after so long, too. */
  within(ms: number, reasonOf?: () => unknown): this {
    this.#timer = setTimeout(() => this.abort(reasonOf?.()), ms);
    return this;
  }

  /** The work is over: nothing of it stays with the caller's signal. */
  release(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener('abort', this.#onAbort);
  }
}
