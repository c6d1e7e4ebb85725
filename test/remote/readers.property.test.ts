/** Random documents of both protocols, however the network cuts them: as they are written, damaged, and cut off. */
import fc from 'fast-check';
import sax from 'sax';
import { describe, expect, test } from 'vitest';
import type { Value } from '../../src/remote/content/values.ts';
import { anyCharacter, numRuns } from '../support/property-runs.ts';
import { fileResponse, listResponse, NAMESPACE, SOAP_1_1, SOAP_1_2 } from '../support/wire-envelopes.ts';
import { attempted, scanJson, scanXml, type Taking } from '../support/wire-scan.ts';

/** At some places, or after each so many bytes. */
const cuts = fc.oneof(fc.array(fc.nat(1500), { maxLength: 6 }), fc.integer({ min: 1, max: 40 }));
const RUNS = numRuns(3_000);
const character = fc.oneof(
  fc.constantFrom(...'<>&"\'];#x\\/{}[]:, u0 \t\r\n\x1b\0\b\f\x7fé\u017e€\uFEFF\uFFFD\uFFFE😀'),
  anyCharacter,
);
const words = fc.string({ unit: character, maxLength: 8 });

/** A text as a server may write it, and what it is. */
interface Written {
  readonly as: string;
  readonly text: string;
}
/** The text of each entry; null if it is null or absent. */
interface Parts {
  readonly document: string;
  readonly texts: readonly (string | null)[];
}

const point = (text: string) => text.codePointAt(0) ?? 0;
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const ofCharacter = (write: (text: string) => string) => character.map((text) => ({ as: write(text), text }));
const xmlText: fc.Arbitrary<Written> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: words.map((text) => ({ as: escaped(text), text })) },
      ofCharacter((text) => `&#${point(text)};`),
      ofCharacter((text) => `&#0${point(text)};`),
      ofCharacter((text) => `&#x${point(text).toString(16)};`),
      ofCharacter((text) => `&#x00${point(text).toString(16).toUpperCase()};`),
      fc.constantFrom('amp &', 'lt <', 'gt >', 'quot "', "apos '").map((one) => ({
        ...{ as: `&${one.slice(0, -2)};`, text: one.slice(-1) },
      })),
      words.map((text) => ({ as: `<![CDATA[${text.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`, text })),
      fc.constantFrom('<!---->', '<!-- <a> & ]]> -->', '<?a b?>', '<?a?>').map((as) => ({ as, text: '' })),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => ({ as: pieces.map(({ as }) => as).join(''), text: pieces.map(({ text }) => text).join('') }));

const hex = (half: string) => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`;
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
const JSON_STYLES = [
  inJson,
  (text: string) => (text === '/' ? '\\/' : inJson(text)),
  (text: string) => text.split('').map(hex).join(''),
  (text: string) => text.split('').map(hex).join('').toUpperCase().replaceAll('\\U', '\\u'),
];
const styles = fc.array(fc.constantFrom(...JSON_STYLES), { minLength: 1, maxLength: 20 });
/** Some JSON, with its texts in any of the ways that JSON has. */
const rewritten = (json: string, ways: readonly ((text: string) => string)[]) => {
  let at = 0;
  const inItsWay = (one: string) => ways[at++ % ways.length]?.(one);
  return json.replaceAll(/"(?:[^"\\]|\\.)*"/gs, (text) => `"${Array.from(JSON.parse(text), inItsWay).join('')}"`);
};
const jsonText = fc.tuple(words, styles).map(([text, ways]) => ({ as: rewritten(JSON.stringify(text), ways), text }));
const space = fc.constantFrom('', '', '', ' ', '\n', '\r\n', '\t');
const jsonValue = fc.anything({
  // Names that differ by more than their case.
  key: words.map((name) => `${name.toLowerCase()}.`),
  values: [words, fc.boolean(), fc.constant(null), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()],
  maxDepth: 3,
});
const someJson = fc
  .tuple(jsonValue, styles, space)
  .map(([value, ways, gap]) => rewritten(JSON.stringify(value, null, gap), ways));

/** Contents with how each is written: in the ways of the protocol, without a value, or not at all. */
const contentsOf = (text: fc.Arbitrary<Written>, none: string) =>
  fc.array(fc.oneof({ weight: 4, arbitrary: text }, fc.constantFrom(none, undefined)), { maxLength: 3 });
const textsOf = (contents: readonly (Written | string | undefined)[]) =>
  contents.map((content) => (typeof content === 'object' ? content.text : null));

const jsonParts = fc
  .tuple(contentsOf(jsonText, 'null'), fc.constantFrom('Content', 'content', 'CONTENT'), space)
  .map(([contents, name, gap]): Parts => {
    const entries = contents.map((content, at) => {
      const value = typeof content === 'object' ? content.as : content;
      return `{${gap}${value === undefined ? '' : `"${name}":${gap}${value},`}"Offset":${at}${gap}}`;
    });
    return { document: `[${gap}${entries.join(`${gap},`)}${gap}]`, texts: textsOf(contents) };
  });

const prefixes = fc.constantFrom(
  ...([
    ['soap', '', SOAP_1_1],
    ['SOAP-ENV', 'ns1:', SOAP_1_1],
    ['env', '', SOAP_1_2],
    ['s', 'a-b.c:', SOAP_1_2],
  ] as const),
);
const xmlParts = fc.tuple(contentsOf(xmlText, 'nil'), prefixes).map(([contents, [soap, own, version]]): Parts => {
  const element = (name: string, inner: string) => `<${own}${name}>${inner}</${own}${name}>`;
  const written = (content: Written | string | undefined) =>
    content === undefined
      ? ''
      : typeof content === 'object'
        ? element('content', content.as)
        : `<${own}content i:nil="true"/>`;
  const entries = contents.map((content, at) =>
    element('JobFileContentExt', `${written(content)}${element('offset', `${at}`)}`),
  );
  const declared = `xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:${soap}="${version}"`;
  const result = element(`${PARTS}Response`, element(`${PARTS}Result`, entries.join('\n')));
  const ownDeclared = `xmlns${own && ':'}${own.slice(0, -1)}="${NAMESPACE}"`;
  const body = result.replace('>', ` ${ownDeclared}>`);
  const envelope = `<${soap}:Envelope ${declared}><${soap}:Body>${body}</${soap}:Body></${soap}:Envelope>`;
  return { document: `<?xml version="1.0" encoding="utf-8"?>${envelope}`, texts: textsOf(contents) };
});
const PARTS = 'DownloadPartsOfJobFilesFromCluster';

/** Leaves as texts, names in lower case. JSON.parse rounds what the reader keeps exactly. */
function asValue(value: unknown): Value {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(asValue);
  if (typeof value !== 'object') return String(value);
  return new Map(Object.entries(value).map(([name, inner]) => [name.toLowerCase(), asValue(inner)]));
}
function rounded(value: Value): Value {
  if (typeof value === 'string') return /^-?\d{16,}$/.test(value) ? String(Number(value)) : value;
  if (Array.isArray(value)) return value.map(rounded);
  return value instanceof Map ? new Map([...value].map(([name, inner]) => [name, rounded(inner)])) : value;
}
const parsedJson = (document: string) => {
  try {
    return rounded(asValue(JSON.parse(document)));
  } catch {
    return undefined;
  }
};

/** The texts of all elements `content`; undefined if the document is no XML. */
function parsedXml(document: string): string[] | undefined {
  const parser = sax.parser(true);
  const texts: string[] = [];
  const open: string[] = [];
  parser.onerror = (error) => {
    throw error;
  };
  parser.onopentag = () => open.push('');
  parser.ontext = (text) => open.push(`${open.pop()}${text}`);
  parser.oncdata = parser.ontext;
  parser.onclosetag = (name) => {
    const text = open.pop() ?? '';
    if (/^(?:[^:]*:)?content$/.test(name)) texts.push(text);
  };
  // sax refuses references to control characters, but takes the characters themselves.
  const acceptable = document.replace(
    /<!\[CDATA\[[\s\S]*?\]\]>|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|&#(?:x([0-9a-fA-F]+)|([0-9]+));/g,
    (found, digits, decimal) => {
      const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16);
      const isControl = (code < 0x20 && ![9, 10, 13].includes(code)) || code === 0xfffe || code === 0xffff;
      return found.startsWith('&') && isControl ? String.fromCodePoint(code) : found;
    },
  );
  try {
    parser.write(acceptable).close();
    return texts;
  } catch {
    return undefined;
  }
}

/** Damaged XML may also be that of another response. */
const REFUSED = /^(?:malformed|unexpected-answer|fault): /;
const OPERATIONS = { parts: PARTS, file: 'DownloadFileFromCluster', items: 'ListChangedFilesForJob' } as const;

interface Protocol {
  readonly parts: fc.Arbitrary<Parts>;
  readonly listing: fc.Arbitrary<readonly [document: string, items: readonly Value[]]>;
  /** Documents to damage, and what damages them. */
  readonly any: fc.Arbitrary<string>;
  readonly taking: Taking;
  readonly damage: readonly string[];
  scan(taking: Taking, document: string | Buffer, at?: number | readonly number[]): ReturnType<typeof scanJson>;
  file(base64: string): string;
  /** Compares with a parse of the whole document by others; undefined: it is refused. */
  compare(document: string, scanned: ReturnType<typeof scanJson> | string): void;
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  JSON: {
    parts: jsonParts,
    any: someJson,
    taking: 'nothing',
    damage: ['', ...'"\\{}[],:u0-.e \n\0/', '\\u', '\\ud83d', 'null'],
    listing: fc.array(fc.oneof(someJson, fc.constantFrom('-0', '1E+3', '2.25e-3')), { maxLength: 4 }).map((items) => {
      return [`[${items.join(' , ')}]`, items.map((item) => asValue(JSON.parse(item)))] as const;
    }),
    scan: (taking, document, at) => scanJson(document, taking, at),
    // System.Text.Json writes + so.
    file: (base64) => JSON.stringify(base64).replaceAll('+', '\\u002B').replaceAll('/', '\\/'),
    compare(document, scanned) {
      // What JSON.parse takes and the reader does not, on purpose.
      const isStricter = /two members of one name|half of a surrogate pair|nested deeper/.test(String(scanned));
      if (!isStricter)
        expect(parsedJson(document)).toEqual(typeof scanned === 'string' ? undefined : rounded(scanned.rest));
    },
  },
  XML: {
    parts: xmlParts,
    any: xmlParts.map(({ document }) => document),
    taking: 'parts',
    // A NUL was taken once, before the name of an entity and in an instruction.
    damage: ['', ...'<>&;"\'/]!x\0\0', '&#', '-->', '<a>', '&am\0p;', '<?\0a?>'],
    listing: fc.array(xmlText, { maxLength: 4 }).map((names) => {
      const document = listResponse(...names.map(({ as }) => `<string>${as}</string>`));
      return [document, names.map(({ text }) => text)] as const;
    }),
    scan: (taking, document, at) => scanXml(OPERATIONS[taking as keyof typeof OPERATIONS], document, at),
    file: fileResponse,
    compare(document, scanned) {
      if (typeof scanned === 'string') return;
      expect(parsedXml(document)).toEqual(expect.arrayContaining(scanned.texts.map(String)));
    },
  },
};

/** Near the edges of what is decoded at once. */
const nearEdge = fc.tuple(fc.nat(3), fc.integer({ min: -4, max: 4 })).map(([slice, more]) => {
  return Math.max(0, slice * 32 * 1024 + more);
});
/** Different from place to place, so that no character can stand for another. */
const LONG = Buffer.from(Uint32Array.from({ length: 30_000 }, (_, at) => Math.imul(at, 2_654_435_761)).buffer);
const base64 = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.tuple(fc.string({ unit: fc.constantFrom(...'AQgw+/=-_* \n'), maxLength: 12 }), cuts),
  },
  fc
    .tuple(nearEdge, fc.array(fc.tuple(nearEdge, fc.constantFrom(...' \n', '\r\n', ...'-_=!')), { maxLength: 2 }))
    .map(([length, odd]) => {
      const text = LONG.subarray(0, length).toString('base64');
      return odd.reduce((before, [place, more]) => before.slice(0, place) + more + before.slice(place), text);
    })
    .chain((text) => fc.tuple(fc.constant(text), fc.array(nearEdge, { maxLength: 4 }))),
);

// They take seconds, but not on a busy machine.
describe.each(Object.entries(PROTOCOLS))('of random documents of %s,', (_, protocol) => {
  const { parts, listing, any, taking, damage, scan, file, compare } = protocol;

  test('texts come out to the byte, each for its item', () => {
    fc.assert(
      fc.property(parts, cuts, ({ document, texts }, at) => {
        const scanned = scan('parts', document, at);
        expect(scanned).toEqual(scan('parts', document));
        expect(scanned.texts).toEqual(texts.flatMap((text) => (text === null ? [] : [Buffer.from(text)])));
        let index = 0;
        expect(scanned.contents).toEqual(texts.map((text) => (text === null ? undefined : index++)));
        const offsets = scanned.items.map((item) => (item as Map<string, Value>).get('offset'));
        expect(offsets).toEqual(texts.map((_, offset) => `${offset}`));
      }),
      RUNS,
    );
  });

  test('the items of a listing come as they are', () => {
    fc.assert(
      fc.property(listing, cuts, ([document, items], at) => {
        expect(scan('items', document, at)).toMatchObject({ items });
      }),
      RUNS,
    );
  });

  test('what is accepted of damaged documents, a parse of the whole document accepts, too', () => {
    const damages = fc.array(fc.tuple(fc.nat(1500), fc.nat(3), fc.constantFrom(...damage)), { maxLength: 3 });
    fc.assert(
      fc.property(any, damages, cuts, (written, changes, at) => {
        let document = written;
        for (const [position, removed, added] of changes) {
          const place = position % (document.length + 1);
          document = document.slice(0, place) + added + document.slice(place + removed);
        }
        if (!document.isWellFormed() || document.startsWith('\uFEFF')) return;
        const [scanned, whole] = [attempted(() => scan(taking, document, at)), attempted(() => scan(taking, document))];
        const isRefused = typeof scanned === 'string';
        if (isRefused) expect(scanned).toMatch(REFUSED);
        expect(typeof whole === 'string' || whole).toEqual(isRefused || scanned);
        if (changes.length === 0) expect(isRefused).toBe(false);
        compare(document, scanned);
      }),
      RUNS,
    );
  });

  test('a document that ends early is an error', () => {
    fc.assert(
      fc.property(parts, fc.nat(), cuts, ({ document }, length, at) => {
        const bytes = Buffer.from(document);
        expect(attempted(() => scan('parts', bytes.subarray(0, length % bytes.length), at))).toMatch(REFUSED);
      }),
      RUNS,
    );
  });

  test('base64 is accepted if and only if it is base64, however it is cut', () => {
    fc.assert(
      fc.property(base64, ([text, at]) => {
        const dense = text.replace(/[ \r\n]/g, '');
        const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(dense);
        const scanned = attempted(() => scan('file', file(text), at));
        // Not `toEqual`, which would compare them byte by byte in its own slow way.
        if (typeof scanned === 'string') expect([scanned.slice(0, 11), isBase64]).toEqual(['malformed: ', false]);
        else
          expect(scanned.texts.map((bytes) => isBase64 && bytes.equals(Buffer.from(dense, 'base64')))).toEqual([true]);
      }),
      RUNS,
    );
  });
});
