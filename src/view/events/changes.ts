/** Wakes up who listens when there may be something new of a subject; each looks then for what that is to it. */
export class Changes {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Something of this subject changed. */
  tell(subject: string): void {
    for (const listener of this.#listeners.get(subject) ?? []) listener.tell();
  }

  /** Listens until it is closed; what changed before counts as heard. */
  listen(subjects: readonly string[]): Listener {
    const listener = new Listener(() => {
      for (const subject of subjects) {
        const others = this.#listeners.get(subject);
        others?.delete(listener);
        if (others?.size === 0) this.#listeners.delete(subject);
      }
    });
    for (const subject of subjects) {
      const others = this.#listeners.get(subject) ?? new Set();
      this.#listeners.set(subject, others.add(listener));
    }
    return listener;
  }
}

export class Listener {
  readonly #onClose: () => void;
  #isTold = false;
  #wake: (() => void) | undefined;
  #isClosed = false;

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  tell(): void {
    this.#isTold = true;
    this.#wake?.();
  }

  /** Whether something changed since the last time that was asked, or within `mostMs`. Ends early when it is closed. */
  async heard(mostMs: number): Promise<boolean> {
    if (!this.#isTold && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, mostMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const isTold = this.#isTold;
    this.#isTold = false;
    return isTold;
  }

  close(): void {
    this.#isClosed = true;
    this.#onClose();
    this.#wake?.();
  }
}
