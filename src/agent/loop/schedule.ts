/** What is due when: each errand at its own time, the next one found without looking at the others. */
import { Heap } from 'heap-js';

interface Entry {
  readonly errand: string;
  readonly dueAt: number;
}

export class Schedule {
  readonly #heap = new Heap<Entry>((a, b) => a.dueAt - b.dueAt);
  /** The entry that counts for an errand; older ones in the heap are passed over when they come up. */
  readonly #current = new Map<string, Entry>();

  /** Makes an errand due at `dueAt` (monotonic milliseconds), whatever it was before. */
  set(errand: string, dueAt: number): void {
    const entry = { errand, dueAt };
    this.#current.set(errand, entry);
    this.#heap.push(entry);
  }

  remove(errand: string): void {
    this.#current.delete(errand);
  }

  has(errand: string): boolean {
    return this.#current.has(errand);
  }

  /** When the next errand is due; undefined if there is none. */
  nextDue(): number | undefined {
    this.#passOver();
    return this.#heap.peek()?.dueAt;
  }

  /** Takes the errands that are due at `now`, the longest due first. */
  takeDue(now: number): string[] {
    const due: string[] = [];
    for (this.#passOver(); (this.#heap.peek()?.dueAt ?? Number.POSITIVE_INFINITY) <= now; this.#passOver()) {
      const entry = this.#heap.pop();
      if (entry === undefined) break;
      this.#current.delete(entry.errand);
      due.push(entry.errand);
    }
    return due;
  }

  #passOver(): void {
    for (
      let top = this.#heap.peek();
      top !== undefined && this.#current.get(top.errand) !== top;
      top = this.#heap.peek()
    ) {
      this.#heap.pop();
    }
  }
}
