/** Text that the reader selects in rows is copied as it is in the file, without the breaks of folded lines. */

/** Puts the selected lines into the clipboard. Text within one row is left to the browser. */
export function copySelected(event: ClipboardEvent): void {
  const selection = getSelection();
  if (selection === null || selection.rangeCount === 0) return;
  const texts = [...selection.getRangeAt(0).cloneContents().querySelectorAll('.text')];
  if (texts.length === 0) return;
  const lines = texts.map((text, index) => {
    const isContinued = text.closest('.row')?.hasAttribute('data-continued') === true;
    return (index === 0 || isContinued ? '' : '\n') + text.textContent;
  });
  event.clipboardData?.setData('text/plain', lines.join(''));
  event.preventDefault();
}
