/** Hostile documents: each is read or refused in a time that grows no faster than its length. */
import { describe, expect, test } from 'vitest';
import { JsonReader } from '../../../../src/remote/rest/json-reader.ts';
import { growthOf } from '../../../support/cpu-cost.ts';
import type { Taking } from '../../../support/wire-scan.ts';

/** As the network brings them. */
const CHUNK_BYTES = 64 * 1024;

const repeated = (piece: string, size: number) => piece.repeat(Math.ceil(size / piece.length));

/** What may stand anywhere, by its size. */
const VALUES: Readonly<Record<string, (size: number) => string>> = {
  'lists in each other': (size) => '['.repeat(size),
  'lists that nest again and again': (size) => `[${repeated(`${'['.repeat(50)}${']'.repeat(50)},`, size)}`,
  'objects that nest again and again': (size) => `[${repeated(`${'{"a":'.repeat(50)}0${'}'.repeat(50)},`, size)}`,
  'empty objects': (size) => `[${repeated('{},', size)}`,
  'members of one object': (size) => `{${Array.from({ length: size / 12 }, (_, at) => `"${at}":0`).join(',')}}`,
  'members of many objects': (size) =>
    `[${repeated(`{${Array.from({ length: 200 }, (_, at) => `"${at}":0`).join(',')}},`, size)}`,
  'members of one name': (size) => `{${repeated('"a":0,', size)}`,
  'long names': (size) => `[${repeated(`{"${'n'.repeat(250)}":0},`, size)}`,
  'a name without end': (size) => `{"${'n'.repeat(size)}`,
  'a name of escapes': (size) => `{"${repeated('\\u0041', size)}`,
  numbers: (size) => `[${repeated('0,', size)}`,
  'long numbers': (size) => `[${repeated(`${'9'.repeat(60)},`, size)}`,
  'a number without end': (size) => '9'.repeat(size),
  'short texts': (size) => `[${repeated('"",', size)}`,
  quotes: (size) => '"'.repeat(size),
  backslashes: (size) => `"${'\\'.repeat(size)}"`,
  commas: (size) => ','.repeat(size),
  'white space': (size) => repeated(' \n\t\r', size),
  'a page': (size) => repeated('<p>text ', size),
};

/** What a text may hold besides. */
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'plain text': (size) => 'x'.repeat(size),
  'short escapes': (size) => repeated('\\n', size),
  'escapes of numbers': (size) => repeated('\\u017e', size),
  'surrogate pairs': (size) => repeated('\\ud83d\\ude00', size),
  'escapes far from each other': (size) => repeated(`${'x'.repeat(2000)}\\n`, size),
  'characters of four bytes': (size) => repeated('😀', size),
  'control characters': (size) => '\x01'.repeat(size),
};

const inText = (text: string) => `[{"Content":"${text}"}]`;
const inRecord = (value: string) => `[{"FileName":${value}}]`;

/** What may stand after a value that is no list, and no file. */
const MORE = { texts: '""', lists: '[]', objects: '{}' };

const hostile: readonly (readonly [what: string, taking: Taking, documentOf: (size: number) => string])[] = [
  ...Object.entries(VALUES).flatMap(([what, of]) => [
    [`${what} in the rest`, 'parts', of] as const,
    [`${what} in a content`, 'parts', (size: number) => `[{"Content":${of(size)}}]`] as const,
    [`${what} in a record`, 'items', (size: number) => inRecord(of(size))] as const,
  ]),
  ...Object.entries(TEXTS).flatMap(([what, of]) => [
    [`${what} in a content`, 'parts', (size: number) => inText(of(size))] as const,
    [`${what} in a name of a listing`, 'items', (size: number) => inRecord(`"${of(size)}"`)] as const,
    [`${what} in the rest`, 'parts', (size: number) => `["${of(size)}"]`] as const,
    [`${what} in base64`, 'file', (size: number) => `"${of(size)}"`] as const,
  ]),
  ...Object.entries(MORE).flatMap(([what, text]) =>
    (['file', 'items'] as const).flatMap((taking) =>
      ['0', ' '.repeat(64 * 1024)].map(
        (before) =>
          [
            `${what} after ${before.trim() || 'blanks'} for ${taking}`,
            taking,
            (size: number) => `${before}0${repeated(text, size)}`,
          ] as const,
      ),
    ),
  ),
];

/** Reads the document, to the error if there is one. */
function read(taking: Taking, document: Buffer, chunkBytes: number): string {
  const encoding = taking === 'file' ? ('base64' as const) : ('text' as const);
  const lifted = { encoding, begin: () => {}, bytes: () => {}, end: () => {}, flush: async () => {} };
  const taken =
    taking === 'file' ? { lifted } : taking === 'items' ? { onItem: () => {} } : { lifted, onItem: () => {} };
  const reader = new JsonReader({ ...taken, maxBytes: 32 * 1024 * 1024 });
  try {
    for (let at = 0; at < document.length; at += chunkBytes) reader.push(document.subarray(at, at + chunkBytes));
    return String(reader.finish().value);
  } catch (error) {
    return String(error);
  }
}

describe('of 128 KiB and of 1 MiB, in a time that grows no faster:', () => {
  test.each(hostile)('%s', (_, taking, documentOf) => {
    const growth = growthOf(128 * 1024, (size) => {
      const document = Buffer.from(documentOf(size));
      return () => read(taking, document, CHUNK_BYTES);
    });
    expect(growth).toMatchObject({ isLinear: true });
  });
});

describe('byte by byte, of 2,000 bytes and of 16,000:', () => {
  test.each([...Object.entries(TEXTS), ...Object.entries(VALUES)])('%s', (_, of) => {
    const growth = growthOf(2000, (size) => {
      const document = Buffer.from(inText(of(size)));
      return () => read('parts', document, 1);
    });
    expect(growth).toMatchObject({ isLinear: true });
  });
});
