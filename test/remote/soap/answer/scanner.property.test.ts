import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { numRuns } from '../../../support/property-runs.ts';
import {
  cuts,
  type PartsDocument,
  partsDocument,
  perhapsBase64,
  writtenBytes,
  writtenText,
} from '../../../support/wire-documents.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../../support/wire-envelopes.ts';
import { textsOf } from '../../../support/wire-reference.ts';
import { scan, tryScan } from '../../../support/wire-scan.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const FILE = 'DownloadFileFromCluster';
const RUNS = numRuns(10_000);

// They take seconds, but not on a busy machine.
describe('10,000 documents each', { timeout: 300_000 }, () => {
  test('texts mean what they were written for, and the rest names each once, however the network cuts them', () => {
    fc.assert(
      fc.property(partsDocument, cuts, ({ xml, texts }, at) => {
        const scanned = scan(PARTS, xml, at);
        expect(scanned.texts.map(String)).toEqual(texts.filter((text) => text !== null));
        expect(scanned.rest).toBe(scan(PARTS, xml).rest);
        let index = 0;
        const entries = texts.map((text) => (text === null ? '<offset>' : `<content>${index++}</content><offset>`));
        expect(scanned.rest.match(/(?:<content>[0-9]+<\/content>)?<offset>/g) ?? []).toEqual(entries);
      }),
      RUNS,
    );
  });

  test('a parse of the whole document says the same', () => {
    fc.assert(
      fc.property(writtenText, cuts, ({ xml }, at) => {
        const document = partsResponse(entry(xml), entry(''));
        expect(scan(PARTS, document, at).texts.map(String)).toEqual(textsOf(document, 'content'));
      }),
      RUNS,
    );
  });

  test('what is accepted of damaged documents, a parse of the whole document accepts, too', () => {
    const damage = fc.tuple(
      fc.nat(1500),
      fc.nat(3),
      fc.constantFrom('', '<', '>', '&', ';', '"', "'", '/', ']', '!', '&#', 'x', '-->', '<a>', '\0'),
    );
    // What was found once: a NUL before the name of an entity, and one in an instruction.
    const document = partsResponse(entry('&amp;<?a b?>'));
    const examples = ['amp;', 'a b?>', 'b?>'].map((behind): [PartsDocument, [number, number, '\0'][], number[]] => [
      { xml: document, texts: [] },
      [[document.indexOf(behind), 0, '\0']],
      [],
    ]);
    fc.assert(
      fc.property(partsDocument, fc.array(damage, { minLength: 1, maxLength: 3 }), cuts, ({ xml }, damages, at) => {
        let document = xml;
        for (const [position, removed, added] of damages) {
          const place = position % document.length;
          document = document.slice(0, place) + added + document.slice(place + removed);
        }
        if (!document.isWellFormed()) return;
        const scanned = tryScan(PARTS, document, at);
        expect(tryScan(PARTS, document)).toEqual(scanned);
        if (typeof scanned === 'string') return;
        const whole = textsOf(document, 'content');
        expect(whole).toEqual(expect.arrayContaining(scanned.texts.map(String)));
      }),
      { ...RUNS, examples },
    );
  });

  test('a document that ends early is an error', () => {
    fc.assert(
      fc.property(partsDocument, fc.nat(), cuts, ({ xml }, length, at) => {
        const bytes = Buffer.from(xml);
        expect(typeof tryScan(PARTS, bytes.subarray(0, length % bytes.length), at)).toBe('string');
      }),
      RUNS,
    );
  });

  test('base64 decodes to the bytes it was made of, however it is cut', () => {
    fc.assert(
      fc.property(writtenBytes, cuts, ({ xml, bytes }, at) => {
        expect(scan(FILE, fileResponse(xml), at).texts).toEqual([bytes]);
      }),
      RUNS,
    );
  });

  test('base64 is accepted if and only if it is base64, however it is cut', () => {
    fc.assert(
      fc.property(perhapsBase64, cuts, ({ text, bytes }, at) => {
        const scanned = tryScan(FILE, fileResponse(text), at);
        expect(scanned).toEqual(bytes === undefined ? 'malformed' : expect.objectContaining({ texts: [bytes] }));
      }),
      RUNS,
    );
  });

  test('names of a listing come as they are', () => {
    fc.assert(
      fc.property(fc.array(writtenText, { maxLength: 4 }), cuts, (names, at) => {
        const document = listResponse(...names.map(({ xml }) => `<string>${xml}</string>`));
        const expected = names.map(({ text }) => text);
        expect(scan('ListChangedFilesForJob', document, at).texts.map(String)).toEqual(expected);
      }),
      RUNS,
    );
  });
});
