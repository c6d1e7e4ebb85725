/** Documents made to keep a reader busy: read or refused in a time that grows no faster than their length. */
import { describe, expect, test } from 'vitest';
import type { Operation } from '../../../../src/operations.ts';
import { Secrets } from '../../../../src/redact.ts';
import { XmlReader } from '../../../../src/remote/soap/xml-reader.ts';
import { growthOf } from '../../../support/cpu-cost.ts';
import { entry, fault11, listResponse, NAMESPACE, partsResponse, response } from '../../../support/wire-envelopes.ts';

const PARTS: Operation = 'DownloadPartsOfJobFilesFromCluster';
const LIST: Operation = 'ListChangedFilesForJob';
/** As the network brings them. */
const CHUNK_BYTES = 64 * 1024;
/** A tag of almost the length that is allowed. */
const TAG_BYTES = 15_000;

const many = (count: number, piece: (index: number) => string) => Array.from({ length: count }, (_, at) => piece(at));
const repeated = (piece: string, size: number) => piece.repeat(Math.ceil(size / piece.length));
const declarations = (count: number, name: string) => many(count, (at) => `xmlns:${name}${at}="u:${at}"`).join(' ');

const [beforeEntry = '', afterEntry = ''] = partsResponse('|').split('|');
const inResult = (xml: string) => `${beforeEntry}${xml}${afterEntry}`;
const inContent = (xml: string) => partsResponse(entry(xml));
const inHeader = (xml: string) =>
  partsResponse(entry('x')).replace('<soap:Body>', () => `<soap:Header>${xml}</soap:Header><soap:Body>`);
const PLACES = { 'the header': inHeader, 'the result': inResult };

/** `inner` inside of elements, each of which declares so many namespaces. */
function nested(depth: number, declared: number, inner: string): string {
  const open = many(depth, (at) => `<a ${declarations(declared, `p${at}_`)}>`).join('');
  return `${open}${inner}${'</a>'.repeat(depth)}`;
}

/** What may stand beside each other anywhere, by its size. */
const MARKUP: Readonly<Record<string, (size: number) => string>> = {
  'namespaces of one element': (size) => `<a ${declarations(size / 20, 'p')}/>`,
  'namespaces of many elements': (size) => repeated('<a xmlns:p="urn:p"/>', size),
  'other namespaces of many elements': (size) => many(size / 24, (at) => `<a xmlns:p${at}="urn:p"/>`).join(''),
  'a namespace of many elements below many namespaces': (size) =>
    nested(50, size / 2 / 50 / 20, repeated('<b xmlns:q="r"/>', size / 2)),
  'namespaces of nested elements': (size) => nested(50, size / 50 / 20, ''),
  'tags full of namespaces': (size) => repeated(`<a ${declarations(700, 'p')}/>`, size),
  'attributes of one element': (size) => `<a ${many(size / 10, (at) => `a${at}="v"`).join(' ')}/>`,
  'tags full of attributes': (size) => repeated(`<a ${many(1000, (at) => `a${at}="v"`).join(' ')}/>`, size),
  'tags full of attributes with prefixes': (size) =>
    repeated(`<a ${many(1000, (at) => `xml:a${at}="v"`).join(' ')}/>`, size),
  'tags full of references': (size) => repeated(`<a b="${repeated('&#38;', TAG_BYTES)}"/>`, size),
  'tags full of quoted ends': (size) => repeated(`<a b="${'>'.repeat(TAG_BYTES)}"/>`, size),
  'tags full of white space': (size) => repeated(`<a${' '.repeat(TAG_BYTES)}/>`, size),
  'a tag of white space and no end': (size) => `<a b${repeated(' ', size)}`,
  'tags with long names': (size) => repeated(`<${'n'.repeat(TAG_BYTES)}/>`, size),
  'tags with long values': (size) => repeated(`<a b="${'v'.repeat(TAG_BYTES)}"/>`, size),
  'elements beside each other': (size) => repeated('<a/>', size),
  'elements inside each other': (size) => '<a>'.repeat(size / 3),
  'elements that nest again and again': (size) => repeated(`${'<a>'.repeat(50)}${'</a>'.repeat(50)}`, size),
  'end tags': (size) => repeated('</a>', size),
  comments: (size) => repeated('<!---->', size),
  'one comment': (size) => `<!--${repeated('- ', size)}-->`,
  'a comment without end': (size) => `<!--${repeated('x', size)}`,
  'processing instructions': (size) => repeated('<?a b?>', size),
  'a processing instruction without end': (size) => `<?a ${repeated('?', size)}`,
  'CDATA of nothing': (size) => repeated('<![CDATA[]]>', size),
  'CDATA without end': (size) => `<![CDATA[${repeated(']]', size)}`,
  'a document type': (size) => `<!DOCTYPE a [${repeated('<!ENTITY b "c">', size)}]>`,
  'white space': (size) => repeated(' \n\t\r', size),
  'less-than signs': (size) => repeated('<', size),
};

/** What a text may hold besides. */
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'references to characters': (size) => repeated('&#9;', size),
  'long references to characters': (size) => repeated(`&#${'0'.repeat(27)}9;`, size),
  'named references': (size) => repeated('&amp;', size),
  'references to nothing': (size) => repeated('&bomb;', size),
  ampersands: (size) => repeated('&', size),
  'CDATA of a character': (size) => repeated('<![CDATA[x]]>', size),
  'comments between characters': (size) => repeated('<!---->x', size),
  'beginnings of the end of CDATA': (size) => `<![CDATA[${repeated(']]x', size)}]]>`,
  'line ends': (size) => repeated('\r\n', size),
  'control characters': (size) => repeated('\0\x1b', size),
};

interface Hostile {
  readonly what: string;
  readonly operation: Operation;
  readonly documentOf: (size: number) => string;
}

const hostile: readonly Hostile[] = [
  ...Object.entries(MARKUP).flatMap(([what, xmlOf]) =>
    Object.entries(PLACES).map(([place, put]) => ({
      ...{ what: `${what} in ${place}`, operation: PARTS },
      documentOf: (size: number) => put(xmlOf(size)),
    })),
  ),
  ...Object.entries({ ...TEXTS, ...MARKUP }).map(([what, xmlOf]) => ({
    ...{ what: `${what} in a content`, operation: PARTS },
    documentOf: (size: number) => inContent(xmlOf(size)),
  })),
  ...Object.entries(TEXTS).flatMap(([what, xmlOf]) => [
    { what: `${what} in the words of a fault`, operation: PARTS, documentOf: (size: number) => fault11(xmlOf(size)) },
    {
      ...{ what: `${what} in base64`, operation: 'DownloadFileFromCluster' as const },
      documentOf: (size: number) =>
        response('DownloadFileFromCluster', `<DownloadFileFromClusterResult>${xmlOf(size)}`),
    },
  ]),
  ...['<string/>', '<string xsi:nil="true"/>', '<string xsi:type="xsd:string">a</string>'].map((name) => ({
    ...{ what: `the names ${name}`, operation: LIST },
    documentOf: (size: number) => listResponse(repeated(name, size)),
  })),
];

/** Reads the document, to the error if there is one. */
function read({ operation }: Hostile, document: Buffer, chunkBytes: number): string {
  const lifted = {
    encoding: operation === 'DownloadFileFromCluster' ? ('base64' as const) : ('text' as const),
    begin: () => {},
    bytes: () => {},
    end: () => {},
    flush: async () => {},
  };
  const reader = new XmlReader({
    ...{ operation, onItem: () => {} },
    namespace: NAMESPACE,
    lifted,
    maxBytes: 32 * 1024 * 1024,
    secrets: new Secrets(),
  });
  try {
    for (let at = 0; at < document.length; at += chunkBytes) reader.push(document.subarray(at, at + chunkBytes));
    const rest = reader.finish();
    return 'fault' in rest ? rest.fault : String(rest.value);
  } catch (error) {
    return String(error);
  }
}

describe('of 128 KiB and of 1 MiB, in a time that grows no faster:', () => {
  test.each(hostile.map((one) => [one.what, one] as const))('%s', (_, one) => {
    const growth = growthOf(128 * 1024, (size) => {
      const document = Buffer.from(one.documentOf(size));
      return () => read(one, document, CHUNK_BYTES);
    });
    expect(growth).toMatchObject({ isLinear: true });
  });
});

describe('byte by byte:', () => {
  test.each([
    ['a tag', (size: number) => inHeader(`<a b="${'>'.repeat(size)}"/>`)],
    ['a processing instruction', (size: number) => inHeader(`<?a ${'>'.repeat(size)}?>`)],
    ['a comment', (size: number) => inHeader(`<!--${'>'.repeat(size)}-->`)],
  ])('%s of 2,000 bytes and of 16,000', (what, documentOf) => {
    const growth = growthOf(2000, (size) => {
      const document = Buffer.from(documentOf(size));
      return () => read({ what, operation: PARTS, documentOf }, document, 1);
    });
    expect(growth).toMatchObject({ isLinear: true });
  });
});
