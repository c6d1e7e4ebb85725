/** "Did you mean": the known word nearest to an unknown one. */
import { distance } from 'fastest-levenshtein';

/** The nearest of `known`, or undefined if none is near. Case, `_` and `-` count for nothing, nor does a missing end. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // Longer words cannot be near any key, and the distance costs length times length.
  if (word.length > 40) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, letters: distance(plain(word), plain(candidate)) }))
    .filter(
      ({ candidate, letters }) =>
        letters <= Math.max(1, Math.floor(candidate.length / 3)) || isBeginning(plain(word), plain(candidate)),
    )
    .sort((a, b) => a.letters - b.letters);
  return ranked[0]?.candidate;
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[_-]/g, '');

/** Whether one of two words is the beginning of the other. */
const isBeginning = (a: string, b: string) => Math.min(a.length, b.length) >= 4 && (a.startsWith(b) || b.startsWith(a));
