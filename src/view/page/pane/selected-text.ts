/** Text that the reader selects in rows is copied as it is in the file, without the breaks of folded lines. */

/** Puts the selected text of the rows into the clipboard: lines as they are in the file. */
export function copySelected(event: ClipboardEvent): void {
  const text = selectedText(event.currentTarget as HTMLElement);
  if (text === '') return;
  event.clipboardData?.setData('text/plain', text);
  event.preventDefault();
}

/** The selected text within an element; empty if none is. */
function selectedText(element: HTMLElement): string {
  const selection = getSelection();
  if (selection === null || selection.isCollapsed || selection.rangeCount === 0) return '';
  const selected = selection.getRangeAt(0);
  return [...element.querySelectorAll('.text')]
    .filter((text) => selected.intersectsNode(text))
    .map((text, index) => {
      const isContinued = text.closest('.row')?.hasAttribute('data-continued') === true;
      return (index === 0 || isContinued ? '' : '\n') + within(text, selected);
    })
    .join('');
}

function within(text: Element, selected: Range): string {
  const part = document.createRange();
  part.selectNodeContents(text);
  if (selected.compareBoundaryPoints(Range.START_TO_START, part) > 0)
    part.setStart(selected.startContainer, selected.startOffset);
  if (selected.compareBoundaryPoints(Range.END_TO_END, part) < 0)
    part.setEnd(selected.endContainer, selected.endOffset);
  return part.toString();
}
