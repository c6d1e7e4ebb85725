import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonNumber } from '../../../../src/remote/rest/requests.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { cuts, perhapsBase64, writtenBytes } from '../../../support/wire-documents.ts';
import { FILE_RULE, LIST_RULE, PARTS_RULE, scanJson, tryScanJson } from '../../../support/wire-json.ts';
import { partsJson, writtenJson, writtenText } from '../../../support/wire-json-documents.ts';

const RUNS = numRuns(10_000);

/** What JSON.parse takes and the scanner does not, on purpose. */
const STRICTER = /two members of one name|half of a surrogate pair/;

function parsed(document: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(document) as unknown };
  } catch {
    return undefined;
  }
}

// They take seconds, but not on a busy machine.
describe('10,000 documents each', { timeout: 300_000 }, () => {
  test('a document means what it was written for, and what JSON.parse says, however the network cuts it', () => {
    fc.assert(
      fc.property(writtenJson, cuts, ({ json, value }, at) => {
        const { rest } = scanJson(json, undefined, at);
        expect(rest).toEqual(value);
        expect(rest).toEqual(JSON.parse(json));
      }),
      RUNS,
    );
  });

  test('texts come out to the byte, and the rest names each once', () => {
    fc.assert(
      fc.property(partsJson, cuts, ({ json, texts }, at) => {
        const scanned = scanJson(json, PARTS_RULE, at);
        expect(scanned.texts).toEqual(texts.flatMap((text) => (text === null ? [] : [Buffer.from(text)])));
        let index = 0;
        const entries = (scanned.rest as Record<string, unknown>[]).map((entry) => Object.values(entry)[0]);
        expect(entries.filter((value) => typeof value === 'object' && value !== null)).toEqual(
          scanned.texts.map(() => ({ lifted: index++ })),
        );
      }),
      RUNS,
    );
  });

  test('of damaged documents those are accepted that JSON.parse accepts, with the same value', () => {
    const damage = fc.tuple(
      fc.nat(300),
      fc.nat(3),
      fc.constantFrom(
        '',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        'u',
        '\\u',
        '\\ud83d',
        '0',
        '-',
        '.',
        'e',
        ' ',
        '\n',
        '\0',
        'null',
        '/',
      ),
    );
    fc.assert(
      fc.property(writtenJson, fc.array(damage, { minLength: 1, maxLength: 3 }), cuts, ({ json }, damages, at) => {
        let document = json;
        for (const [position, removed, added] of damages) {
          const place = position % (document.length + 1);
          document = document.slice(0, place) + added + document.slice(place + removed);
        }
        if (!document.isWellFormed() || document.startsWith('\uFEFF')) return;
        const scanned = tryScanJson(document, undefined, at);
        const whole = tryScanJson(document);
        const reference = parsed(document);
        if (typeof scanned === 'string') {
          // Which of two errors of one text is told depends on where the network cut it.
          expect([scanned, whole]).toEqual([scanned, whole].map(() => expect.stringMatching(/^malformed: /)));
          if (!STRICTER.test(scanned)) expect(reference).toBeUndefined();
        } else {
          expect(whole).toEqual(scanned);
          expect(reference).toEqual({ value: scanned.rest });
        }
      }),
      RUNS,
    );
  });

  test('a document that ends early is an error', () => {
    fc.assert(
      fc.property(partsJson, fc.nat(), cuts, ({ json }, length, at) => {
        const bytes = Buffer.from(json);
        expect(tryScanJson(bytes.subarray(0, length % bytes.length), PARTS_RULE, at)).toMatch(/^malformed: /);
      }),
      RUNS,
    );
  });

  test('bytes that are not UTF-8 are an error wherever they stand', () => {
    const wrong = fc.constantFrom(
      [0xff],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xe2, 0x82],
      [0xf5, 0x80, 0x80, 0x80],
      [0xa9],
    );
    fc.assert(
      fc.property(writtenText, wrong, writtenText, cuts, (before, bytes, behind, at) => {
        const document = Buffer.concat([
          Buffer.from(`[{"Content":${before.json.slice(0, -1)}`),
          Buffer.from(bytes),
          Buffer.from(`${behind.json.slice(1)}}]`),
        ]);
        expect(tryScanJson(document, PARTS_RULE, at)).toMatch(/^malformed: /);
      }),
      RUNS,
    );
  });

  test('whole numbers of 64 bits are exact', () => {
    const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(fc.array(long, { minLength: 1, maxLength: 4 }), cuts, (numbers, at) => {
        const { json } = scanJson(`[${numbers.join(',')}]`, undefined, at);
        expect(json).toEqual(numbers.map((number) => new JsonNumber(String(number))));
      }),
      RUNS,
    );
  });

  test('base64 decodes to the bytes it was made of, however it is written and cut', () => {
    fc.assert(
      fc.property(writtenBytes, fc.boolean(), cuts, ({ xml: base64, bytes }, escapes, at) => {
        // System.Text.Json writes + so.
        const json = escapes
          ? JSON.stringify(base64).replaceAll('+', '\\u002B').replaceAll('/', '\\/')
          : JSON.stringify(base64);
        expect(scanJson(json, FILE_RULE, at)).toMatchObject({ texts: [bytes], rest: undefined });
      }),
      RUNS,
    );
  });

  test('base64 is accepted if and only if it is base64, however it is cut', () => {
    fc.assert(
      fc.property(perhapsBase64, cuts, ({ text, bytes }, at) => {
        const scanned = tryScanJson(JSON.stringify(text), FILE_RULE, at);
        if (bytes !== undefined) expect(scanned).toMatchObject({ texts: [bytes] });
        else expect(scanned).toMatch(/^malformed: /);
      }),
      RUNS,
    );
  });

  test('names of a listing come as they are, in both of its forms', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(writtenText, fc.boolean()), { maxLength: 4 }), cuts, (names, at) => {
        const items = names.map(([{ json }, dated]) => (dated ? `{"FileName":${json},"LastModifiedDate":null}` : json));
        const { texts, records, rest } = scanJson(`[${items.join(',')}]`, LIST_RULE, at);
        const found = names.map(([, dated], index) => (dated ? records[index]?.join() : String(texts[index])));
        const expected = names.map(([{ value }, dated]) => (dated && value !== '' ? `filename=${value}` : value));
        expect([found, rest]).toEqual([expected, []]);
      }),
      RUNS,
    );
  });
});
