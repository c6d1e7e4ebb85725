/** Documents made to keep a reader busy: read or refused in a time that grows no faster than their length. */
import { describe, expect, test } from 'vitest';
import { growthOf } from '../../support/cpu-cost.ts';
import { entry, fault11, listResponse, partsResponse, response } from '../../support/wire-envelopes.ts';
import { attempted, type Cuts, scanJson, scanXml } from '../../support/wire-scan.ts';

const times = (count: number, piece: string) =>
  Array.from({ length: count }, (_, at) => piece.replaceAll('@', `${at}`)).join('');

/** Each `(piece)*` is repeated up to the size; `§` is another number in each piece. */
function grown(pattern: string, size: number): string {
  const groups = pattern.split(')*').length - 1;
  return pattern.replaceAll(/\(([^()]*)\)\*/g, (_, piece: string) => {
    const count = Math.ceil(size / groups / piece.length);
    return piece.includes('§') ? times(count, piece.replaceAll('§', '@')) : piece.repeat(count);
  });
}

/** What may stand anywhere in JSON. */
const VALUES = [
  ...['([)*', '[({},)*]', '{("§":0,)*}', '{("a":0,)*}', '{"(n)*', '{"(\\u0041)*', '[(0,)*]', '(9)*', '[("",)*]'],
  ...['(")*', '"(\\)*"', '(,)*', '( \n\t\r)*', '(<p>text )*', `[({"${'n'.repeat(250)}":0},)*]`],
  ...[`[(${'['.repeat(50)}${']'.repeat(50)},)*]`, `[(${'{"a":'.repeat(50)}0${'}'.repeat(50)},)*]`],
  ...[`[({${times(200, '"@":0,')}"a":0},)*]`, `[(${'9'.repeat(60)},)*]`],
];
/** What a text of JSON may hold besides. */
const JSON_TEXTS = [
  ...['(x)*', '(\\n)*', '(\\u017e)*', '(\\ud83d\\ude00)*', '(😀)*', '(\x01)*', `(${'x'.repeat(2000)}\\n)*`],
];

/** Tags of almost the length that is allowed. */
const NAMESPACES = times(700, ' xmlns:p§_@="u:@"');
const full = (piece: string) => piece.repeat(15_000 / piece.length);
/** What may stand beside each other anywhere in XML. */
const MARKUP = [
  ...['<a( xmlns:p§="u:§")*/>', '(<a xmlns:p="urn:p"/>)*', '(<a xmlns:p§="urn:p"/>)*', `(<a${NAMESPACES}/>)*`],
  ...[`(<a${NAMESPACES}>)*`, `(<a${NAMESPACES}>)*(<b xmlns:q="r"/>)*`, '<a( a§="v")*/>'],
  ...[`(<a${times(1000, ' a@="v"')}/>)*`, `(<a${times(1000, ' xml:a@="v"')}/>)*`],
  ...[`(<a b="${full('&#38;')}"/>)*`, `(<a b="${full('>')}"/>)*`, `(<a${full(' ')}/>)*`],
  ...['<a b( )*', `(<${full('n')}/>)*`, `(<a b="${full('v')}"/>)*`, '(<a/>)*', '(<a>)*', '(</a>)*', '(<!---->)*'],
  ...[`(${'<a>'.repeat(50)}${'</a>'.repeat(50)})*`, '<!--(- )*-->', '<!--(x)*', '(<?a b?>)*', '<?a (?)*'],
  ...['(<![CDATA[]]>)*', '<![CDATA[(]])*', '<!DOCTYPE a [(<!ENTITY b "c">)*]>', '( \n\t\r)*', '(<)*'],
];
/** What a text of XML may hold besides. */
const XML_TEXTS = [
  ...['(&#9;)*', `(&#${'0'.repeat(27)}9;)*`, '(&amp;)*', '(&bomb;)*', '(&)*', '(<![CDATA[x]]>)*', '(<!---->x)*'],
  ...['<![CDATA[(]]x)*]]>', '(\r\n)*', '(\0\x1b)*'],
];
const NAMES = ['(<string/>)*', '(<string xsi:nil="true"/>)*', '(<string xsi:type="xsd:string">a</string>)*'];

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const [beforeEntry, afterEntry] = partsResponse('|').split('|');
const inHeader = (xml: string) =>
  partsResponse(entry('x')).replace('<soap:Body>', () => `<soap:Header>${xml}</soap:Header><soap:Body>`);
const inFile = (xml: string) =>
  response('DownloadFileFromCluster', `<DownloadFileFromClusterResult>${xml}</DownloadFileFromClusterResult>`);

type Place = readonly [patterns: readonly string[], read: (text: string, cuts: Cuts) => unknown];

const json = (taking: Parameters<typeof scanJson>[1], put: (text: string) => string) => {
  return (text: string, cuts: Cuts) => scanJson(put(text), taking, cuts);
};
const xml = (operation: Parameters<typeof scanXml>[0], put: (text: string) => string) => {
  return (text: string, cuts: Cuts) => scanXml(operation, put(text), cuts);
};
const inContent = json('parts', (text) => `[{"Content":"${text}"}]`);
const MORE = ['("")*', '([])*', '({})*'];

const PLACES: Readonly<Record<string, Place>> = {
  'JSON, in the rest': [VALUES, json('parts', (text) => text)],
  'JSON, in a content': [VALUES, json('parts', (text) => `[{"Content":${text}}]`)],
  'JSON, in a record': [VALUES, json('items', (text) => `[{"FileName":${text}}]`)],
  'JSON, in the text of a content': [JSON_TEXTS, inContent],
  'JSON, in a name of a listing': [JSON_TEXTS, json('items', (text) => `[{"FileName":"${text}"}]`)],
  'JSON, in a text of the rest': [JSON_TEXTS, json('parts', (text) => `["${text}"]`)],
  'JSON, in base64': [JSON_TEXTS, json('file', (text) => `"${text}"`)],
  // What may stand after a value that is no list, and no file.
  'JSON, after a file': [MORE, json('file', (text) => `00${text}`)],
  'JSON, after a list': [MORE, json('items', (text) => `00${text}`)],
  'JSON, after blanks for a file': [MORE, json('file', (text) => `${' '.repeat(64 * 1024)}0${text}`)],
  'JSON, after blanks for a list': [MORE, json('items', (text) => `${' '.repeat(64 * 1024)}0${text}`)],
  'XML, in the header': [MARKUP, xml(PARTS, inHeader)],
  'XML, in the result': [MARKUP, xml(PARTS, (text) => `${beforeEntry}${text}${afterEntry}`)],
  'XML, in a content': [[...XML_TEXTS, ...MARKUP], xml(PARTS, (text) => partsResponse(entry(text)))],
  'XML, in the words of a fault': [XML_TEXTS, xml(PARTS, fault11)],
  'XML, in base64': [XML_TEXTS, xml('DownloadFileFromCluster', inFile)],
  'XML, in a listing': [NAMES, xml('ListChangedFilesForJob', listResponse)],
};
const BYTE_BY_BYTE: Readonly<Record<string, Place>> = {
  'JSON, in a content': [[...JSON_TEXTS, ...VALUES], inContent],
  'XML, in the header': [['<a b="(>)*"/>', '<?a (>)*?>', '<!--(>)*-->'], xml(PARTS, inHeader)],
};

const title = (pattern: string) => (pattern.length > 60 ? `${pattern.slice(0, 50)}... (${pattern.length})` : pattern);

for (const [what, size, cutBytes, places] of [
  ['of 128 KiB and of 1 MiB', 128 * 1024, 64 * 1024, PLACES],
  ['byte by byte, of 2,000 bytes and of 16,000', 2_000, 1, BYTE_BY_BYTE],
] as const)
  for (const [place, [patterns, read]] of Object.entries(places))
    describe(`${what}, in a time that grows no faster: ${place}`, () => {
      test.each(patterns.map((pattern) => [title(pattern), pattern]))('%s', (_, pattern = '') => {
        const growth = growthOf(size, (bytes) => {
          const text = grown(pattern, bytes);
          // As the network brings them.
          const count = Math.ceil((2 * text.length + 4 * 1024 * 1024) / cutBytes);
          const cuts = cutBytes === 1 ? 1 : Array.from({ length: count }, (__, at) => (at + 1) * cutBytes);
          return () => attempted(() => read(text, cuts));
        });
        expect(growth).toMatchObject({ isLinear: true });
      });
    });
