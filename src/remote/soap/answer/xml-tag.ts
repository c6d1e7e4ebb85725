/** Tags of XML with namespaces: names, attributes and what their prefixes stand for. */
import { malformed } from '../../wrong-answers.ts';
import { resolveReferences } from './xml-text.ts';

const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';
const XSI_NAMESPACE = 'http://www.w3.org/2001/XMLSchema-instance';
const XMLNS_NAMESPACE = 'http://www.w3.org/2000/xmlns/';

export interface StartTag {
  /** As written, prefix included: the end tag repeats it. */
  readonly qualifiedName: string;
  readonly namespace: string;
  readonly localName: string;
  /** `xsi:nil` is true. */
  readonly nil: boolean;
  /** `<name/>`. */
  readonly empty: boolean;
  /** How many there are, declarations of namespaces among them. */
  readonly attributes: number;
}

/**
 * What prefixes stand for where the document has come to; '' is the default namespace. There is one map for the whole
 * document, and a list of what to put back at the end of each element: a declaration costs the same wherever it stands.
 */
export class Namespaces {
  /** Of each prefix, what it stands for; undefined if that is over. Taking keys out again and again would be slow. */
  readonly #bound = new Map<string, string | undefined>([
    ['', ''],
    ['xml', XML_NAMESPACE],
  ]);
  /** Of each open element, its declarations with what they hide. */
  readonly #hidden: (readonly Hidden[])[] = [];

  /** An element with these attributes begins. @throws JobtailError malformed */
  open(attributes: ReadonlyMap<string, string>): void {
    let hidden: Hidden[] | undefined;
    for (const [name, namespace] of attributes) {
      if (name !== 'xmlns' && !name.startsWith('xmlns:')) continue;
      const prefix = name.slice('xmlns:'.length);
      const isXml = prefix === 'xml' && namespace === XML_NAMESPACE;
      const reserved = prefix === 'xml' || prefix === 'xmlns' || namespace === XMLNS_NAMESPACE;
      if ((reserved && !isXml) || (prefix !== '' && namespace === '')) throw malformed('a wrong namespace declaration');
      hidden ??= [];
      hidden.push([prefix, this.#bound.get(prefix)]);
      this.#bound.set(prefix, namespace);
    }
    this.#hidden.push(hidden ?? NONE_HIDDEN);
  }

  /** The innermost element ends. */
  close(): void {
    for (const [prefix, namespace] of this.#hidden.pop() ?? NONE_HIDDEN) this.#bound.set(prefix, namespace);
  }

  /** @throws JobtailError malformed for a prefix that stands for nothing */
  resolve(qualifiedName: string): { namespace: string; localName: string } {
    const colon = qualifiedName.indexOf(':');
    const namespace = this.#bound.get(colon === -1 ? '' : qualifiedName.slice(0, colon));
    if (namespace === undefined) throw malformed('a prefix without a namespace');
    return { namespace, localName: qualifiedName.slice(colon + 1) };
  }
}

type Hidden = readonly [prefix: string, namespace: string | undefined];
const NONE_HIDDEN: readonly Hidden[] = [];

const NAME = String.raw`[A-Za-z_\u0080-\u{10FFFF}][\w.\-\u00B7\u0080-\u{10FFFF}]*`;
const QUALIFIED_NAME = `(?:${NAME}:)?${NAME}`;
const START_OF_TAG = new RegExp(`<(${QUALIFIED_NAME})`, 'uy');
const ATTRIBUTE = new RegExp(
  String.raw`[ \t\r\n]+(${QUALIFIED_NAME})[ \t\r\n]*=[ \t\r\n]*(?:"([^<"]*)"|'([^<']*)')`,
  'uy',
);
const END_OF_TAG = /[ \t\r\n]*(\/?)>/y;
const END_TAG = new RegExp(String.raw`^</(${QUALIFIED_NAME})[ \t\r\n]*>$`, 'u');

/**
 * Reads a start tag from `<` to `>`; `namespaces` are those inside its element afterwards.
 * @throws JobtailError malformed
 */
export function parseStartTag(tag: string, namespaces: Namespaces): StartTag {
  START_OF_TAG.lastIndex = 0;
  const qualifiedName = START_OF_TAG.exec(tag)?.[1];
  if (qualifiedName === undefined) throw malformed('a < that begins no tag');
  const attributes = parseAttributes(tag, START_OF_TAG.lastIndex);
  namespaces.open(attributes.values);
  const { namespace, localName } = namespaces.resolve(qualifiedName);
  const { values, empty } = attributes;
  return { qualifiedName, namespace, localName, nil: isNil(values, namespaces), empty, attributes: values.size };
}

/**
 * The name in an end tag, as written.
 * @throws JobtailError malformed
 */
export function parseEndTag(tag: string): string {
  const name = END_TAG.exec(tag)?.[1];
  if (name === undefined) throw malformed('a wrong end tag');
  return name;
}

function parseAttributes(tag: string, start: number): { values: ReadonlyMap<string, string>; empty: boolean } {
  const values = new Map<string, string>();
  let at = start;
  for (;;) {
    ATTRIBUTE.lastIndex = at;
    const attribute = ATTRIBUTE.exec(tag);
    if (attribute === null) break;
    const name = attribute[1] ?? '';
    if (values.has(name)) throw malformed('an attribute that stands twice in a tag');
    values.set(name, attributeValue(attribute[2] ?? attribute[3] ?? ''));
    at = ATTRIBUTE.lastIndex;
  }
  END_OF_TAG.lastIndex = at;
  const end = END_OF_TAG.exec(tag);
  if (end === null || END_OF_TAG.lastIndex !== tag.length) throw malformed('a wrong start tag');
  return { values, empty: end[1] === '/' };
}

function attributeValue(text: string): string {
  return text.includes('&') ? resolveReferences(Buffer.from(text)).toString() : text;
}

function isNil(attributes: ReadonlyMap<string, string>, namespaces: Namespaces): boolean {
  let nil = false;
  for (const [name, value] of attributes) {
    if (!name.includes(':') || name.startsWith('xmlns:')) continue;
    const { namespace, localName } = namespaces.resolve(name);
    if (namespace === XSI_NAMESPACE && localName === 'nil') nil = ['true', '1'].includes(value.trim());
  }
  return nil;
}
