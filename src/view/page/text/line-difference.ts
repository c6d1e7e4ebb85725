/** Which lines of two texts differ, in bounded work. */

export interface DifferenceLine {
  readonly kind: 'same' | 'before' | 'after';
  readonly text: string;
}

/** Lines between those that both texts begin and end with; with more, all of them count as different. */
const MAX_COMPARED_LINES = 1_000;

interface Line {
  readonly text: string;
  readonly key: string;
}

/**
 * The lines of both texts in order: those in common, those of the first one alone, those of the second one alone. Lines
 * with the same key are in common, with the text of the second one.
 */
export function lineDifference(
  texts: readonly string[],
  otherTexts: readonly string[],
  keyOf = (text: string) => text,
): DifferenceLine[] {
  const [before, after] = [texts, otherTexts].map((each) => each.map((text): Line => ({ text, key: keyOf(text) }))) as [
    Line[],
    Line[],
  ];
  const shorter = Math.min(before.length, after.length);
  let first = 0;
  while (first < shorter && before[first]?.key === after[first]?.key) first++;
  let last = 0;
  while (last < shorter - first && before.at(-1 - last)?.key === after.at(-1 - last)?.key) last++;
  const old = before.slice(first, before.length - last);
  const young = after.slice(first, after.length - last);
  const between =
    Math.max(old.length, young.length) > MAX_COMPARED_LINES
      ? [...of('before', old), ...of('after', young)]
      : compared(old, young);
  return [...of('same', after.slice(0, first)), ...between, ...of('same', after.slice(after.length - last))];
}

const of = (kind: DifferenceLine['kind'], lines: readonly Line[]): DifferenceLine[] =>
  lines.map(({ text }) => ({ kind, text }));

/** By the longest common subsequence. */
function compared(before: readonly Line[], after: readonly Line[]): DifferenceLine[] {
  const width = after.length + 1;
  // Of the lines from each pair of indexes on: how many are in common.
  const common = new Uint16Array((before.length + 1) * width);
  const at = (old: number, young: number) => common[old * width + young] ?? 0;
  for (let old = before.length - 1; old >= 0; old--)
    for (let young = after.length - 1; young >= 0; young--)
      common[old * width + young] =
        before[old]?.key === after[young]?.key
          ? at(old + 1, young + 1) + 1
          : Math.max(at(old + 1, young), at(old, young + 1));
  const lines: DifferenceLine[] = [];
  for (let [old, young] = [0, 0]; old < before.length || young < after.length; ) {
    const [oldLine, youngLine] = [before[old], after[young]];
    if (oldLine !== undefined && youngLine !== undefined && oldLine.key === youngLine.key) {
      lines.push({ kind: 'same', text: youngLine.text });
      old++;
      young++;
    } else if (oldLine !== undefined && (youngLine === undefined || at(old + 1, young) >= at(old, young + 1))) {
      lines.push({ kind: 'before', text: oldLine.text });
      old++;
    } else {
      lines.push({ kind: 'after', text: youngLine?.text ?? '' });
      young++;
    }
  }
  return lines;
}
