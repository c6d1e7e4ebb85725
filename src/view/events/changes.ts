/** Notifies listeners that a subject may have changed; each reads then what it needs. */
export class Changes {
  readonly #listeners = new Set<Listener>();

  /** Something of this subject changed. */
  report(subject: string): void {
    for (const listener of this.#listeners) if (listener.subjects.includes(subject)) listener.report();
  }

  /** Listens until it is closed; what changed before counts as heard. */
  listen(subjects: readonly string[]): Listener {
    const listener = new Listener(subjects, () => this.#listeners.delete(listener));
    this.#listeners.add(listener);
    return listener;
  }
}

export class Listener {
  readonly subjects: readonly string[];
  readonly #onClose: () => void;
  #isReported = false;
  #isClosed = false;
  #wake = () => {};

  constructor(subjects: readonly string[], onClose: () => void) {
    this.subjects = subjects;
    this.#onClose = onClose;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  report(): void {
    this.#isReported = true;
    this.#wake();
  }

  /** Whether something changed since the last time that was asked, or within `maxMs`. Ends early when it is closed. */
  async heard(maxMs: number): Promise<boolean> {
    if (!this.#isReported && !this.#isClosed)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, maxMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    const isReported = this.#isReported;
    this.#isReported = false;
    return isReported;
  }

  close(): void {
    this.#isClosed = true;
    this.#onClose();
    this.#wake();
  }
}
