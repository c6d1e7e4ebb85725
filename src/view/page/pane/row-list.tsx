/** Where the rows of a file are drawn, those on the screen; text that the reader selects there is copied without breaks. */
import type { Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren, RefObject } from 'preact';
import { ScrollKeys } from '../parts/bar.tsx';
import type { Opened } from './opened.ts';

interface RowListProps {
  readonly opened: Opened;
  readonly list: Virtualizer<HTMLElement, HTMLElement>;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly label: string;
  /** For its style alone. */
  readonly kind?: string;
  /** The rows of `list`. */
  readonly children: ComponentChildren;
}

export function RowList({ opened, list, scroller, label, kind = '', children }: RowListProps) {
  const [first] = list.getVirtualItems();
  return (
    <div
      class={`rows ${kind} ${opened.wraps.value ? 'wraps' : ''}`}
      ref={scroller}
      role="log"
      aria-live="off"
      aria-label={label}
      onCopy={copySelected}
    >
      <ScrollKeys label={label} />
      <div class="rows-all" style={{ height: `${list.getTotalSize()}px` }}>
        <div class="rows-shown" style={{ transform: `translateY(${first?.start ?? 0}px)` }}>
          {children}
        </div>
      </div>
    </div>
  );
}

/** Puts the selected text of the rows into the clipboard: lines as they are in the file. */
function copySelected(event: ClipboardEvent): void {
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
