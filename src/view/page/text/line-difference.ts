/** Which lines of two texts differ, in bounded work. */

export interface DifferenceLine {
  readonly kind: 'same' | 'before' | 'after';
  readonly text: string;
}

/** Lines between those that both texts begin and end with; with more, all of them count as different. */
const MAX_COMPARED_LINES = 1_000;

/** The lines of both texts in order: those in common, those of the first one alone, those of the second one alone. */
export function lineDifference(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  const shorter = Math.min(before.length, after.length);
  let first = 0;
  while (first < shorter && before[first] === after[first]) first++;
  let last = 0;
  while (last < shorter - first && before.at(-1 - last) === after.at(-1 - last)) last++;
  const old = before.slice(first, before.length - last);
  const young = after.slice(first, after.length - last);
  const between =
    Math.max(old.length, young.length) > MAX_COMPARED_LINES
      ? [...of('before', old), ...of('after', young)]
      : compared(old, young);
  return [...of('same', before.slice(0, first)), ...between, ...of('same', before.slice(before.length - last))];
}

const of = (kind: DifferenceLine['kind'], lines: readonly string[]): DifferenceLine[] =>
  lines.map((text) => ({ kind, text }));

/** By the longest common subsequence. */
function compared(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  const width = after.length + 1;
  // Of the lines from each pair of indexes on: how many are in common.
  const common = new Uint16Array((before.length + 1) * width);
  const at = (old: number, young: number) => common[old * width + young] ?? 0;
  for (let old = before.length - 1; old >= 0; old--)
    for (let young = after.length - 1; young >= 0; young--)
      common[old * width + young] =
        before[old] === after[young] ? at(old + 1, young + 1) + 1 : Math.max(at(old + 1, young), at(old, young + 1));
  const lines: DifferenceLine[] = [];
  for (let [old, young] = [0, 0]; old < before.length || young < after.length; ) {
    const [oldText, youngText] = [before[old], after[young]];
    if (oldText !== undefined && oldText === youngText) {
      lines.push({ kind: 'same', text: oldText });
      old++;
      young++;
    } else if (oldText !== undefined && (youngText === undefined || at(old + 1, young) >= at(old, young + 1))) {
      lines.push({ kind: 'before', text: oldText });
      old++;
    } else {
      lines.push({ kind: 'after', text: youngText ?? '' });
      young++;
    }
  }
  return lines;
}
