/**
 * Names of result files come from the server and are hostile until proven otherwise: the path of a name below
 * `results/`, or the reason why it has none (field notes 4).
 */
import { partsOf } from '../path-parts.ts';

/** Temporary files of downloads stand beside their target under such a name; no result may have one. */
const PARTIAL_NAME = /^\.jobtail-[0-9a-f]{16}\.partial$/;

/** A fresh name for a temporary file. */
export function partialName(random: string): string {
  return `.jobtail-${random}.partial`;
}

/** Whether a directory entry is a temporary file of a download. */
export function isPartialName(name: string): boolean {
  return PARTIAL_NAME.test(name);
}

const MOST_BYTES_A_PART = 255;
const MOST_BYTES_A_PATH = 3_000;
const MOST_PARTS = 100;

export type ResultPath = { readonly parts: readonly string[] } | { readonly refused: string };

/** The path of a listed name below `results/`: leading slashes are dropped, doubled ones count once. */
export function resultPath(name: string): ResultPath {
  const parts = partsOf(name);
  if (parts.length === 0) return { refused: 'it is empty' };
  if (name.endsWith('/')) return { refused: 'it names a directory' };
  if (Buffer.byteLength(name) > MOST_BYTES_A_PATH || parts.length > MOST_PARTS) return { refused: 'it is too long' };
  if (!name.isWellFormed()) return { refused: 'it cannot be written as UTF-8' };
  for (const part of parts) {
    const reason = reasonAgainst(part);
    if (reason !== undefined) return { refused: reason };
  }
  return { parts };
}

function reasonAgainst(part: string): string | undefined {
  if (part === '.' || part === '..') return `it has the part ${part}`;
  if (part.includes('\\')) return 'it has a backslash';
  // A newline or a tab in a name is legal and is kept; what moves a terminal's cursor is not.
  if (/[\p{Cc}]/u.test(part.replaceAll(/[\n\t]/g, ''))) return 'it has a control character';
  // No SOAP request could ask for it.
  if (/[\uFFFE\uFFFF]/.test(part)) return 'it has a character that XML cannot hold';
  if (Buffer.byteLength(part) > MOST_BYTES_A_PART) return `a part of it is longer than ${MOST_BYTES_A_PART} bytes`;
  if (isPartialName(part)) return 'it looks like a temporary file of the agent';
  return undefined;
}

/** A name as it can be shown on a terminal or in a log: what is not visible is written as its number. */
export function printable(name: string): string {
  return name.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `\\u{${number}}`;
  });
}
