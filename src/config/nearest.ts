/** "Did you mean": the known word nearest to an unknown one. */

/** The nearest of `known`, or undefined if none is near. Case, `_` and `-` count for nothing, nor does a missing end. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // Longer words cannot be near any key, and the distance costs length times length.
  if (word.length > 40) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: distanceBetween(plain(word), plain(candidate)) }))
    .filter(
      ({ candidate, distance }) =>
        distance <= Math.max(1, Math.floor(candidate.length / 3)) || isBeginning(plain(word), plain(candidate)),
    )
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[_-]/g, '');

/** Whether one of two words is the beginning of the other. */
const isBeginning = (a: string, b: string) => Math.min(a.length, b.length) >= 4 && (a.startsWith(b) || b.startsWith(a));

/** Levenshtein distance: letters inserted, left out or replaced. */
function distanceBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
