/** How a file is downloaded or previewed. */
import type { PreviewKind } from '../contract/addresses.ts';
import type { FileContent } from './content.ts';

/** What a browser saves it as, whatever it is called (RFC 6266). */
export function attachment(name: string): string {
  const safe = name.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\]/gu, '_');
  const ascii = safe.replaceAll(/[^ !#-[\]-~]|["%]/g, '_');
  const encoded = encodeURIComponent(safe).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

interface KnownType {
  readonly kind: PreviewKind;
  readonly type: string;
  readonly begins: RegExp;
}

const PDF: KnownType = { kind: 'pdf', type: 'application/pdf', begins: /^%PDF-/ };
const JPEG: KnownType = { kind: 'image', type: 'image/jpeg', begins: /^\xff\xd8\xff/ };

const KNOWN: Readonly<Record<string, KnownType>> = {
  avif: { kind: 'image', type: 'image/avif', begins: /^....ftypavi/s },
  bmp: { kind: 'image', type: 'image/bmp', begins: /^BM/ },
  gif: { kind: 'image', type: 'image/gif', begins: /^GIF8[79]a/ },
  jpeg: JPEG,
  jpg: JPEG,
  pdf: PDF,
  png: { kind: 'image', type: 'image/png', begins: /^\x89PNG\r\n/ },
  svg: { kind: 'image', type: 'image/svg+xml', begins: /^(?:\xef\xbb\xbf)?\s*</ },
  webp: { kind: 'image', type: 'image/webp', begins: /^RIFF....WEBP/s },
};

const BEGINNING_BYTES = 64;

const extensionOf = (name: string) => /\.([a-z]{1,5})$/i.exec(name)?.[1]?.toLowerCase() ?? '';

export const previewKindOf = (name: string): PreviewKind => KNOWN[extensionOf(name)]?.kind ?? 'text';

/** Undefined if it is only shown as text. */
export function previewTypeOf(content: FileContent): string | undefined {
  const known = KNOWN[extensionOf(content.name)];
  const beginning = content.read(0, Math.min(content.bytes, BEGINNING_BYTES)).toString('latin1');
  return known?.begins.test(beginning) ? known.type : undefined;
}
