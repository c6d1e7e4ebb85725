/** What the view is made of, in memory: a job as the server sends it, bytes as a content, and what a page shows. */
import type { Element, Node } from 'happy-dom';
import { onTestFinished, vi } from 'vitest';
import type { Source } from '../../src/view/content/content.ts';
import type { JobSummary } from '../../src/view/contract/events.ts';
import { NO_RESULTS } from '../../src/view/events/jobs.ts';

export const jobSummary = (jobId: string, more: Partial<JobSummary> = {}): JobSummary => ({
  jobId,
  name: null,
  jobState: null,
  creationTime: null,
  submitTime: null,
  startTime: null,
  jobStateSince: null,
  endTime: null,
  state: 'watched',
  owner: null,
  isElsewhere: false,
  source: 'command',
  tasks: { found: 0, searching: false, hint: null },
  liveBytes: 0,
  polledAt: null,
  grownAt: null,
  stalledAt: null,
  changedAt: 0,
  hasResults: true,
  results: NO_RESULTS,
  firstError: null,
  ...more,
});

export function sourceOf(bytes: Buffer): Source {
  const read = (start: number, end: number) => {
    if (start < 0 || start > end || end > bytes.length)
      throw new Error(`read of [${start}, ${end}) of ${bytes.length}`);
    return Buffer.from(bytes.subarray(start, end));
  };
  let looked = Buffer.alloc(0);
  return {
    bytes: bytes.length,
    read,
    readShared(start, end) {
      // Whoever keeps what was looked at before finds something else there.
      looked.fill(0xee);
      looked = read(start, end);
      return looked;
    },
  };
}

/** What a module of the page looks for when it is loaded; gone with the test. */
export function stubPage(more: Readonly<Record<string, unknown>> = {}): void {
  const globals = {
    ...{ location: { pathname: '/', search: '' }, localStorage: { getItem: () => null }, document: { hidden: false } },
    ...more,
  };
  for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);
  onTestFinished(() => void vi.unstubAllGlobals());
}

const ATTRIBUTES = [
  ...['label', 'current', 'pressed', 'sort', 'expanded', 'invalid', 'valuetext', 'rowcount', 'rowindex', 'live'].map(
    (name) => `aria-${name}`,
  ),
  ...['role', 'href', 'src', 'sandbox', 'target', 'title', 'placeholder', 'maxlength', 'hidden', 'max', 'value'],
  ...['data-continued', 'tabindex'],
];
/** Of the rest, a layout makes what it is. */
const STYLE = /(?:color|background-color|border-radius|padding-left|--count): [^;]*/g;

/** Of a chain of elements, each the only child of the one before, as many as fit are on one line. */
const MAX_CHAIN = 100;

/** Elements with their classes and what people see or hear of them, one a line; a text alone is on the line of its element. */
export function outline(node: Node, drawnOn: (canvas: object) => readonly string[] = () => []): string {
  return `${linesOf(node, drawnOn).join('\n')}\n`;
}

function linesOf(node: Node, drawnOn: (canvas: object) => readonly string[]): readonly string[] {
  if (node.nodeType !== 1) return [];
  const element = node as Element & Record<'disabled' | 'checked' | 'open', unknown>;
  const { localName, classList } = element;
  if (localName === 'svg') return [`svg ${element.querySelector('path')?.getAttribute('d')?.slice(0, 12)}`];
  if (localName === 'dialog' && !element.open) return [];
  if (classList.contains('u-wrap')) return [drawnOn(element.querySelector('canvas') ?? {}).join(' ')];
  const attributes = ATTRIBUTES.flatMap((name) =>
    element.hasAttribute(name) ? [` ${name}=${JSON.stringify(element.getAttribute(name))}`] : [],
  );
  const style = element.getAttribute('style')?.match(STYLE) ?? [];
  const states = (['disabled', 'checked', 'open'] as const).filter((name) => element[name] === true);
  const focus = localName !== 'body' && node.ownerDocument.activeElement === node ? ['focused'] : [];
  const words = [...style, ...states, ...focus].map((word) => ` ${word}`);
  const head = [localName, ...[...classList].map((name) => `.${name}`), ...attributes, ...words].join('');
  const inside: (readonly string[])[] = [];
  let text = '';
  const endText = () => {
    if (text.trim() !== '') inside.push([JSON.stringify(text)]);
    text = '';
  };
  for (const child of element.childNodes) {
    if (child.nodeType === 3) text += child.textContent;
    else {
      endText();
      inside.push(linesOf(child, drawnOn));
    }
  }
  endText();
  const [first = [], ...more] = inside.filter((lines) => lines.length > 0);
  const indented = [first, ...more].flat().map((line) => `  ${line}`);
  const [next = '', ...rest] = first;
  const isText = next.startsWith('"');
  if (more.length > 0 || (!isText && head.length + next.length > MAX_CHAIN)) return [head, ...indented];
  return next === '' ? [head] : [`${head}${isText ? '' : ' >'} ${next}`, ...rest];
}

/** What came between two texts, below the line before it; and how many lines went there. */
export function difference(before: readonly string[], now: readonly string[]): string[] {
  const shorter = Math.min(before.length, now.length);
  let [start, end] = [0, 0];
  while (start < shorter && before[start] === now[start]) start++;
  while (end < shorter - start && before.at(-1 - end) === now.at(-1 - end)) end++;
  const [old, young] = [before, now].map((lines) => lines.slice(start, lines.length - end)) as [string[], string[]];
  // Of each two ends, how many lines are the same at most.
  const same = Array.from({ length: old.length + 1 }, () => new Uint16Array(young.length + 1));
  const sameFrom = (at: number, place: number) => same[at]?.[place] ?? 0;
  for (let at = old.length - 1; at >= 0; at--)
    for (let place = young.length - 1; place >= 0; place--)
      (same[at] as Uint16Array)[place] =
        old[at] === young[place]
          ? sameFrom(at + 1, place + 1) + 1
          : Math.max(sameFrom(at + 1, place), sameFrom(at, place + 1));
  const shown: string[] = [];
  for (let [at, place] = [0, 0]; at < old.length || place < young.length; ) {
    const [from, first] = [at, place];
    while ((at < old.length || place < young.length) && (at >= old.length || old[at] !== young[place]))
      if (place < young.length && sameFrom(at, place) === sameFrom(at, place + 1)) place++;
      else at++;
    const anchor = (now[start + first - 1] ?? '').trim().slice(0, 60);
    if (at > from || place > first) shown.push(`@ ${anchor}${at > from ? ` -${at - from}` : ''}`);
    shown.push(...young.slice(first, place));
    while (at < old.length && old[at] === young[place] && place < young.length) [at, place] = [at + 1, place + 1];
  }
  return shown;
}
