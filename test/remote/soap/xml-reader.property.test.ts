import fc from 'fast-check';
import sax from 'sax';
import { describe, expect, test } from 'vitest';
import { numRuns } from '../../support/property-runs.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../support/wire-envelopes.ts';
import {
  attempted,
  cuts,
  type PartsDocument,
  partsDocument,
  perhapsBase64,
  scanXml,
  writtenText,
} from '../../support/wire-scan.ts';

/** The texts of all `localName` elements; undefined if the document is no XML. */
function textsOf(document: string, localName: string): string[] | undefined {
  const parser = sax.parser(true);
  const texts: string[] = [];
  const open: { local: string; text: string }[] = [];
  parser.onerror = (error) => {
    throw error;
  };
  parser.onopentag = ({ name }) => open.push({ local: name.slice(name.indexOf(':') + 1), text: '' });
  const onText = (text: string) => {
    const inner = open.at(-1);
    if (inner !== undefined) inner.text += text;
  };
  parser.ontext = onText;
  parser.oncdata = onText;
  parser.onclosetag = () => {
    const closed = open.pop();
    if (closed?.local === localName) texts.push(closed.text);
  };
  try {
    parser.write(acceptable(document)).close();
  } catch {
    return undefined;
  }
  return texts;
}

/** sax refuses references to control characters, but takes the characters themselves. Not inside CDATA and the like. */
function acceptable(document: string): string {
  return document.replace(
    /<!\[CDATA\[[\s\S]*?\]\]>|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|&#(?:x([0-9a-fA-F]+)|([0-9]+));/g,
    (found, hex, decimal) => {
      if (!found.startsWith('&')) return found;
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      const isControl = (point < 0x20 && ![9, 10, 13].includes(point)) || point === 0xfffe || point === 0xffff;
      return isControl ? String.fromCodePoint(point) : found;
    },
  );
}

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
