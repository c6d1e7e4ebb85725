/** So many lines arrive that nobody could read them: the youngest of each mirror, in turns, at a pace for people. */
export class LineSelection {
  readonly #youngest = new Map<string, string>();
  /** Names in the order in which they were shown last, the longest ago first. */
  readonly #turns = new Set<string>();
  arrived = 0;
  shown = 0;

  offer(line: string, name: string): void {
    this.arrived += 1;
    this.#youngest.set(name, line);
    this.#turns.add(name);
  }

  /** What has arrived until now is not shown any more. */
  drop(): void {
    this.#youngest.clear();
  }

  /** The next line to show; undefined if none has arrived since. */
  next(): string | undefined {
    for (const name of this.#turns) {
      const line = this.#youngest.get(name);
      if (line === undefined) continue;
      this.#youngest.delete(name);
      this.#turns.delete(name);
      this.#turns.add(name);
      this.shown += 1;
      return line;
    }
    return undefined;
  }
}
