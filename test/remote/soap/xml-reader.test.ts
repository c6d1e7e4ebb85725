import { describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/operations.ts';
import type { Value } from '../../../src/remote/content/values.ts';
import {
  entry,
  envelope,
  fault11,
  fault12,
  fileResponse,
  listResponse,
  NAMESPACE,
  partsResponse,
  response,
  SOAP_1_1,
  SOAP_1_2,
} from '../../support/wire-envelopes.ts';
import { attempted, type Cuts, scanXml } from '../../support/wire-scan.ts';

const PARTS: Operation = 'DownloadPartsOfJobFilesFromCluster';
const FILE: Operation = 'DownloadFileFromCluster';
const LIST: Operation = 'ListChangedFilesForJob';

const errorOf = (operation: Operation, document: Buffer | string, cuts: Cuts = []) => {
  const scanned = attempted(() => scanXml(operation, document, cuts));
  return typeof scanned === 'string' ? scanned.replace(/:.*/s, '') : scanned;
};

describe('content is wrong with', () => {
  test.each([
    ['an unknown entity', '&nbsp;'],
    ['a bare ampersand', 'a & b'],
    ['a number past Unicode', '&#x110000;'],
    ['a reference without end', `&#${'0'.repeat(100)}65;`],
    ['half a surrogate pair', '&#xD83D;'],
    ['a surrogate pair as two references', '&#xD83D;&#xDE00;'],
    ['a NUL inside the name of an entity', '&am\0p;'],
    ['an element', 'a<b/>c'],
  ])('%s', (_, content) => {
    expect(errorOf(PARTS, partsResponse(entry(content)))).toBe('malformed');
  });

  test.each([
    ['a byte that is not UTF-8', [0xff]],
    ['an overlong character', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a character cut by the end of the text', [0xe2, 0x82]],
    ['a character past Unicode', [0xf5, 0x80, 0x80, 0x80]],
  ])('%s', (_, bytes) => {
    const [before = '', after = ''] = partsResponse(entry('|')).split('|');
    const document = Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
    expect(errorOf(PARTS, document)).toBe('malformed');
    expect(errorOf(PARTS, document, [before.length + 1])).toBe('malformed');
  });
});

describe('what is lifted', () => {
  test('leaves an empty text in its item, and a nil one null', () => {
    const nil = '<JobFileContentExt><content xsi:nil="true"/><offset>7</offset></JobFileContentExt>';
    const { rest, items, contents, texts } = scanXml(PARTS, partsResponse(entry('a'), nil, entry('b')));
    expect(texts.map(String)).toEqual(['a', 'b']);
    expect([rest, contents]).toEqual(['', [0, undefined, 1]]);
    expect(items.map((item) => Object.fromEntries(item as Map<string, Value>))).toMatchObject([
      { content: '', relativepath: '/out', submittedtaskinfoid: '9001' },
      { content: null, offset: '7' },
      { content: '' },
    ]);
  });

  test.each([
    ['xsi:nil="false"', 'x', ['x']],
    ['xsi:nil="1"', '', []],
    ['xsi:type="xsd:string" xml:space="preserve"', ' x ', [' x ']],
    ['a="&quot;&#x41;" b=\'>\'', 'x', ['x']],
  ])('may have attributes: %s', (attributes, content, expected) => {
    const document = partsResponse(
      `<JobFileContentExt><content ${attributes}>${content}</content></JobFileContentExt>`,
    );
    expect(scanXml(PARTS, document).texts.map(String)).toEqual(expected);
  });

  test('is found whatever its prefix', () => {
    const prefixed = `<S:Envelope xmlns:S='${SOAP_1_2}' xmlns:n = "${NAMESPACE}"><S:Header><a b="c">&amp;<d/></a></S:Header>
      <S:Body ><n:${PARTS}Response><n:${PARTS}Result><JobFileContentExt xmlns="${NAMESPACE}">
      <n:content\n>x</n:content ><n:offset>1</n:offset></JobFileContentExt></n:${PARTS}Result></n:${PARTS}Response>\r\n</S:Body></S:Envelope>\n`;
    const { items, texts } = scanXml(PARTS, prefixed);
    expect(texts.map(String)).toEqual(['x']);
    const item = [
      ['content', ''],
      ['offset', '1'],
    ] as const;
    expect(items).toEqual([new Map(item)]);
  });

  test('stands at its place', () => {
    const deeper = partsResponse(
      '<JobFileContentExt><x><content>x</content></x></JobFileContentExt><content>y</content>',
    );
    expect(scanXml(PARTS, deeper).texts).toEqual([]);
    expect(scanXml(FILE, fileResponse('<!-- -->')).texts.map(String)).toEqual(['']);
  });

  test('may be names, some of them nil', () => {
    const names = listResponse('<string>a &amp; b</string>', '<string xsi:nil="true" />', '<string/>');
    expect(scanXml(LIST, names)).toMatchObject({ rest: '', items: ['a & b', null, ''], texts: [] });
  });
});

test.each([
  ['<![CDATA[a]]]>b', 'a]b'],
  ['<![CDATA[]]]]><![CDATA[>]]>', ']]>'],
  ['<![CDATA[]]>', ''],
  ['<![CDATA[<&amp;€]]>&amp;€', '<&amp;€&€'],
  ['a<!-- - ]]> -->b<!---->c<?x > ?>d', 'abcd'],
  ['&#x1F600;&#128512;&lt;&#0065;', '😀😀<A'],
])('the text %s is the same wherever its document is cut', (written, text) => {
  const item = entry('|').replace('|', written).replace('/out', written);
  for (const cuts of [[], 1, 2, 3, 5, 7, 11])
    expect(attempted(() => scanXml(PARTS, partsResponse(item, item), cuts).texts.map(String))).toEqual([text, text]);
  const path = (scanXml(PARTS, partsResponse(item), 1).items[0] as Map<string, Value>).get('relativepath');
  expect(path).toBe(text);
});

test('base64 may stand in CDATA and around comments, but not in references', () => {
  expect(scanXml(FILE, fileResponse('AA<![CDATA[E]]><!-- -->C')).texts).toEqual([Buffer.from([0, 1, 2])]);
  expect(errorOf(FILE, fileResponse('A&#x41;EC'))).toBe('malformed');
});

describe('the rest', () => {
  test('has control characters where the server wrote references', () => {
    const { rest } = scanXml(PARTS, fault11('a&#x1B;[31m &lt;b&gt; &#0;<![CDATA[&]]>'));
    expect(rest).toBe('soap:Server: a\x1b[31m <b> \0&');
  });

  test('has faults of both versions without their details', () => {
    const detail = '<detail><at xmlns="urn:x">secret</at></detail></soap:Fault>';
    expect(scanXml(PARTS, fault11('broken').replace('<detail /></soap:Fault>', detail)).rest).toBe(
      'soap:Server: broken',
    );
    expect(scanXml(PARTS, fault12('broken')).rest).toBe('soap:Receiver: broken');
  });
});

describe('an answer is wrong with', () => {
  const good = partsResponse(entry('x'));
  test.each([
    ['nothing in it', '', 'unexpected-answer'],
    ['a foreign root element', '<a/>', 'unexpected-answer'],
    ['an envelope of another namespace', good.replace(SOAP_1_1, 'urn:x'), 'unexpected-answer'],
    ['an empty body', envelope(''), 'unexpected-answer'],
    ['no body', `<s:Envelope xmlns:s="${SOAP_1_1}"/>`, 'unexpected-answer'],
    ['two bodies', good.replace('</soap:Envelope>', '<soap:Body/></soap:Envelope>'), 'unexpected-answer'],
    ['two results', envelope(`<${PARTS}Response xmlns="${NAMESPACE}"/>`.repeat(2)), 'unexpected-answer'],
    ['the answer of another operation', listResponse(), 'unexpected-answer'],
    ['the request', response(PARTS, '').replaceAll('Response', ''), 'unexpected-answer'],
    ['another namespace', good.replace(NAMESPACE, 'urn:x'), 'unexpected-answer'],
    ['a document type', `<!DOCTYPE a [<!ENTITY x "y">]>${good}`, 'malformed'],
    ['a document type after the declaration', good.replace('?>', '?><!DOCTYPE html>'), 'malformed'],
    ['a web page', '<html><body/></html>', 'malformed'],
    ['a declaration of another encoding', good.replace('utf-8', 'windows-1250'), 'malformed'],
    ['text in the envelope', good.replace('<soap:Body>', 'x<soap:Body>'), 'malformed'],
    ['text in the body', good.replace('<soap:Body>', '<soap:Body>x'), 'malformed'],
    [
      'an element inside a nil one',
      good.replace('<JobFileContentExt>', '<JobFileContentExt xsi:nil="true">'),
      'malformed',
    ],
    ['text inside a nil one', good.replace('<content>', '<content xsi:nil="true">'), 'malformed'],
    ['deep nesting', partsResponse('<a>'.repeat(100_000)), 'malformed'],
    ['a huge tag', good.replace('<content>', `<content a="${'x'.repeat(65_536)}">`), 'malformed'],
    ['a huge tag name', partsResponse(`<${'a'.repeat(1_000_000)}>`), 'malformed'],
    ['a tag without end', partsResponse(`<a b="${'x'.repeat(1_000_000)}`), 'malformed'],
    ['many elements', partsResponse(`<b>${'<a/>'.repeat(70_000)}</b>`), 'answer-too-large'],
    ['much text', partsResponse(entry('').replace('/out', 'x'.repeat(5_000_000))), 'answer-too-large'],
    ['many items', partsResponse(entry('x').replace('/out', 'y'.repeat(1_000)).repeat(9_500)), 'answer-too-large'],
    ['two contents in one entry', good.replace('<content>', '<content>y</content><content>'), 'malformed'],
    ['a huge comment', good.replace('<content>', `<!--${'x'.repeat(100_000)}--><content>`), 'malformed'],
  ])('%s', (_, document, code) => {
    expect(errorOf(PARTS, document)).toBe(code);
  });
});

test('a byte order mark, white space and comments may stand before and after the envelope', () => {
  const document = `\uFEFF${partsResponse(entry('x'))}\r\n<!-- end -->\n<?end?>`;
  expect(scanXml(PARTS, document).texts.map(String)).toEqual(['x']);
  for (const space of ['\n\n', '\t', '\r', ' '])
    expect(scanXml(PARTS, `${space}${partsResponse(entry('x'))}${space}`).texts.map(String)).toEqual(['x']);
  expect(errorOf(PARTS, `\v${partsResponse(entry('x'))}`)).toBe('malformed');
  const bytes = Buffer.from(document);
  expect(scanXml(PARTS, bytes, 1).texts.map(String)).toEqual(['x']);
});
