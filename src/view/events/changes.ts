/** Wakes the streams up when there may be something new; each looks then for what that is to it. */
export class Changes {
  #count = 0;
  #wake = new Set<() => void>();

  /** Something changed. */
  tell(): void {
    this.#count++;
    const wake = this.#wake;
    this.#wake = new Set();
    for (const each of wake) each();
  }

  /** How many changes there were: to be noted before one looks. */
  get count(): number {
    return this.#count;
  }

  /** Resolves when there was a change since `count`, or after `mostMs`. */
  since(count: number, mostMs: number): Promise<void> {
    if (count !== this.#count) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#wake.delete(end);
        resolve();
      };
      const timer = setTimeout(end, mostMs);
      this.#wake.add(end);
    });
  }
}
