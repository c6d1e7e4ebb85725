import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { numRuns } from '../../support/property-runs.ts';
import { cuts, type PartsDocument, partsDocument, perhapsBase64, writtenText } from '../../support/wire-documents.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../support/wire-envelopes.ts';
import { textsOf } from '../../support/wire-reference.ts';
import { attempted, scanXml } from '../../support/wire-scan.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const FILE = 'DownloadFileFromCluster';
const RUNS = numRuns(3_000);

// They take seconds, but not on a busy machine.
describe('of random documents,', () => {
  test('texts mean what they were written for, each for its item, however the network cuts them', () => {
    fc.assert(
      fc.property(partsDocument, cuts, ({ xml, texts }, at) => {
        const scanned = scanXml(PARTS, xml, at);
        expect(scanned.texts.map(String)).toEqual(texts.filter((text) => text !== null));
        expect(scanned).toEqual(scanXml(PARTS, xml));
        let index = 0;
        expect(scanned.contents).toEqual(texts.map((text) => (text === null ? undefined : index++)));
      }),
      RUNS,
    );
  });

  test('a parse of the whole document says the same', () => {
    fc.assert(
      fc.property(writtenText, cuts, ({ xml }, at) => {
        const document = partsResponse(entry(xml), entry(''));
        expect(scanXml(PARTS, document, at).texts.map(String)).toEqual(textsOf(document, 'content'));
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
        const scanned = attempted(() => scanXml(PARTS, document, at));
        const whole = attempted(() => scanXml(PARTS, document));
        expect(typeof scanned === 'string' ? typeof whole : whole).toEqual(
          typeof scanned === 'string' ? 'string' : scanned,
        );
        if (typeof scanned === 'string') return;
        expect(textsOf(document, 'content')).toEqual(expect.arrayContaining(scanned.texts.map(String)));
      }),
      { ...RUNS, examples },
    );
  });

  test('a document that ends early is an error', () => {
    fc.assert(
      fc.property(partsDocument, fc.nat(), cuts, ({ xml }, length, at) => {
        const bytes = Buffer.from(xml);
        const cut = bytes.subarray(0, length % bytes.length);
        expect(typeof attempted(() => scanXml(PARTS, cut, at))).toBe('string');
      }),
      RUNS,
    );
  });

  test('base64 is accepted if and only if it is base64, however it is cut', () => {
    fc.assert(
      fc.property(perhapsBase64, cuts, ({ text, bytes }, at) => {
        const scanned = attempted(() => scanXml(FILE, fileResponse(text), at));
        if (bytes !== undefined) expect(scanned).toMatchObject({ texts: [bytes] });
        else expect(scanned).toMatch(/^malformed: /);
      }),
      RUNS,
    );
  });

  test('names of a listing come as they are', () => {
    fc.assert(
      fc.property(fc.array(writtenText, { maxLength: 4 }), cuts, (names, at) => {
        const document = listResponse(...names.map(({ xml }) => `<string>${xml}</string>`));
        const expected = names.map(({ text }) => text);
        expect(scanXml('ListChangedFilesForJob', document, at)).toMatchObject({ rest: '', items: expected });
      }),
      RUNS,
    );
  });
});
