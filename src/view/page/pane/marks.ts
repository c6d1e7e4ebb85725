/** Places within the text of rows: matches are painted, and one place is brought onto the screen. */

const NAME = 'match';
/** Maximum rows on one screen. */
const MAX_MARKS = 2_000;

/** Paints in the rows below `element` what is to be marked in each; what is returned takes it away again. */
export function highlight(element: HTMLElement | null, needleIn: (index: number) => RegExp | undefined): () => void {
  if (element === null || !('highlights' in CSS)) return () => undefined;
  const painted = CSS.highlights.get(NAME) ?? new Highlight();
  CSS.highlights.set(NAME, painted);
  const ranges = [...element.querySelectorAll('.row')]
    .flatMap((row) => {
      const index = Number(row.closest<HTMLElement>('[data-index]')?.dataset['index']);
      return rangesIn(row.querySelector('.text'), needleIn(index));
    })
    .slice(0, MAX_MARKS);
  for (const range of ranges) painted.add(range);
  return () => {
    for (const range of ranges) painted.delete(range);
  };
}

function rangesIn(row: Element | null, needle: RegExp | undefined): Range[] {
  if (row === null || needle === undefined) return [];
  const text = row.textContent;
  return [...text.matchAll(needle)]
    .filter(([match]) => match !== '')
    .map(({ 0: match, index }) => {
      const range = new Range();
      range.setStart(...placeOf(row, index));
      range.setEnd(...placeOf(row, index + match.length));
      return range;
    });
}

/** The node that holds a character of the row, and its place in there. */
function placeOf(row: Element, index: number): [Node, number] {
  const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  let rest = index;
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const length = node.nodeValue?.length ?? 0;
    if (rest <= length) return [node, rest];
    rest -= length;
  }
  return [row, row.childNodes.length];
}

/** Scrolls to a character of a row, if it is not on the screen. */
export function reveal(scroller: HTMLElement | null, index: number, character: number): void {
  const text = scroller?.querySelector(`[data-index="${index}"] .text`);
  if (scroller == null || text == null) return;
  const place = new Range();
  place.setStart(...placeOf(text, character));
  place.setEnd(...placeOf(text, Math.min(character + 1, text.textContent.length)));
  const at = place.getBoundingClientRect();
  const area = scroller.getBoundingClientRect();
  if (at.right > area.right || at.left < area.left) scroller.scrollLeft += at.left - area.left - area.width / 3;
  if (at.top < area.top || at.bottom > area.bottom) scroller.scrollTop += at.top - area.top - area.height / 2;
}
