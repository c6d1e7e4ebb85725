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

/** Elements with their classes and what people see or hear of them, one a line; a text alone is on the line of its element. */
export function outline(node: Node, drawnOn: (canvas: object) => readonly string[] = () => [], depth = 0): string {
  const indent = '  '.repeat(depth);
  if (node.nodeType === 3)
    return node.textContent.trim() === '' ? '' : `${indent}${JSON.stringify(node.textContent)}\n`;
  if (node.nodeType !== 1) return '';
  const element = node as Element & Record<'disabled' | 'checked' | 'open', unknown>;
  const { localName, classList, childNodes } = element;
  if (localName === 'svg') return `${indent}svg ${element.querySelector('path')?.getAttribute('d')?.slice(0, 12)}\n`;
  if (localName === 'dialog' && !element.open) return '';
  if (classList.contains('u-wrap')) return `${indent}${drawnOn(element.querySelector('canvas') ?? {}).join(' ')}\n`;
  const attributes = ATTRIBUTES.flatMap((name) =>
    element.hasAttribute(name) ? [` ${name}=${JSON.stringify(element.getAttribute(name))}`] : [],
  );
  const style = element.getAttribute('style')?.match(STYLE) ?? [];
  const states = (['disabled', 'checked', 'open'] as const).filter((name) => element[name] === true);
  const focus = localName !== 'body' && node.ownerDocument.activeElement === node ? ['focused'] : [];
  const words = [...style, ...states, ...focus].map((word) => ` ${word}`);
  const inside = [...childNodes].map((child) => outline(child, drawnOn, depth + 1));
  const isText = childNodes.length === 1 && childNodes[0]?.nodeType === 3;
  const head = [indent, localName, ...[...classList].map((name) => `.${name}`), ...attributes, ...words].join('');
  return `${head}${isText ? ` ${inside[0]?.trim()}` : ''}\n${isText ? '' : inside.join('')}`;
}

/** Between the equal beginning and the equal end of two texts: how many lines went, and the lines that came. */
export function difference(before: readonly string[], now: readonly string[]): string {
  const shorter = Math.min(before.length, now.length);
  let [start, end] = [0, 0];
  while (start < shorter && before[start] === now[start]) start++;
  while (end < shorter - start && before.at(-1 - end) === now.at(-1 - end)) end++;
  return `- ${before.length - end - start} lines\n${now.slice(start, now.length - end).join('')}`;
}
