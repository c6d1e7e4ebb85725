/** Which files are shown as more than text: by their name, and only if they begin as such files do. */
import type { Content } from '../content/content.ts';
import type { PreviewKind } from '../contract/contents.ts';

interface Known {
  readonly kind: PreviewKind;
  readonly type: string;
  readonly begins: RegExp;
}

const PDF: Known = { kind: 'pdf', type: 'application/pdf', begins: /^%PDF-/ };
const JPEG: Known = { kind: 'image', type: 'image/jpeg', begins: /^\xff\xd8\xff/ };
const HTML: Known = { kind: 'html', type: 'text/html; charset=utf-8', begins: /^(?:\xef\xbb\xbf)?\s*</ };

const KNOWN: Readonly<Record<string, Known>> = {
  avif: { kind: 'image', type: 'image/avif', begins: /^....ftypavi/s },
  bmp: { kind: 'image', type: 'image/bmp', begins: /^BM/ },
  gif: { kind: 'image', type: 'image/gif', begins: /^GIF8[79]a/ },
  htm: HTML,
  html: HTML,
  jpeg: JPEG,
  jpg: JPEG,
  pdf: PDF,
  png: { kind: 'image', type: 'image/png', begins: /^\x89PNG\r\n/ },
  svg: { kind: 'image', type: 'image/svg+xml', begins: /^(?:\xef\xbb\xbf)?\s*</ },
  webp: { kind: 'image', type: 'image/webp', begins: /^RIFF....WEBP/s },
};

const BEGINNING_BYTES = 64;

const extensionOf = (name: string) => /\.([a-z]{1,5})$/i.exec(name)?.[1]?.toLowerCase() ?? '';

export function previewKindOf(name: string): PreviewKind {
  const extension = extensionOf(name);
  return extension === 'csv' || extension === 'tsv' ? 'csv' : (KNOWN[extension]?.kind ?? 'text');
}

/** Undefined if it is only shown as text. */
export function previewTypeOf(content: Content): string | undefined {
  const known = KNOWN[extensionOf(content.name)];
  const beginning = content.read(0, Math.min(content.bytes, BEGINNING_BYTES)).toString('latin1');
  return known?.begins.test(beginning) ? known.type : undefined;
}
