/** Chance by a seed: the same seed and name give the same numbers on every machine. */

export class Chance {
  #state: number;

  /** Each `name` is a stream of its own: what one part of a run draws changes nothing for another. */
  constructor(seed: number, name: string) {
    let state = seed >>> 0;
    for (const character of name) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    this.#state = state;
  }

  /** In [0, 1): mulberry32. Bound, for it is handed out alone. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };

  /** Whether something of this probability happens. */
  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `min` to `max`. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** From `min` to `max`, small ones as often as large ones. */
  spread(min: number, max: number): number {
    return min * (max / min) ** this.next();
  }

  /** One of a list, which has at least one. */
  among<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.next() * list.length)];
    if (found === undefined) throw new Error('nothing to choose from');
    return found;
  }

  /** One of a list, or undefined if it is empty. */
  any<T>(list: readonly T[]): T | undefined {
    return list.length === 0 ? undefined : this.among(list);
  }

  /** A name, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return (entries.at(-1) as [Name, number])[0];
  }
}
