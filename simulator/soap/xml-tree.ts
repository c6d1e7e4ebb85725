/**
 * A request document as a tree, read as strictly as ASP.NET's XmlTextReader does: no DTD, no character that XML 1.0
 * forbids (neither raw nor as a reference), line ends normalised. What is not well-formed is answered with 400.
 */
import sax from 'sax';
import { HttpRefusal } from '../refusals.ts';

export interface XmlElement {
  readonly local: string;
  readonly uri: string;
  /** Attributes other than namespace declarations, by `{uri}local`, or the plain name of one without a namespace. */
  readonly attributes: ReadonlyMap<string, string>;
  /** xsi:nil is true. */
  readonly nil: boolean;
  readonly children: readonly XmlElement[];
  /** All text directly in the element. */
  readonly text: string;
}

type Growing = XmlElement & { children: XmlElement[]; text: string };

export const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
const XMLNS = 'http://www.w3.org/2000/xmlns/';
const MAX_DEPTH = 64;
/** What is no Char of XML 1.0. Lone surrogates cannot come out of valid UTF-8. */
const FORBIDDEN = /[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
/** Where `]]>` may stand. */
const SECTIONS = /<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>/gs;

/** Reads a whole document. Throws a 400 with an empty body if it is not well-formed. */
export function readXml(bytes: Buffer): XmlElement {
  const text = decodeUtf8(bytes);
  // sax lets a bare `]]>` in text pass; XML does not.
  if (FORBIDDEN.test(text) || text.replace(SECTIONS, '').includes(']]>')) throw malformed();
  const options = { xmlns: true, strictEntities: true, position: false };
  const parser = sax.parser(true, options);
  const open: Growing[] = [];
  let root: XmlElement | undefined;

  parser.onerror = () => {
    throw malformed();
  };
  parser.ondoctype = () => {
    throw malformed();
  };
  parser.onprocessinginstruction = ({ name, body }) => {
    if (name === 'xml' && /encoding\s*=\s*["'](?!utf-8["'])/i.test(body)) throw malformed();
  };
  parser.onopentag = (tag) => {
    const element = elementOf(tag as sax.QualifiedTag);
    const parent = open.at(-1);
    // sax lets a second root pass.
    if (open.length === MAX_DEPTH || (parent === undefined && root !== undefined)) throw malformed();
    if (parent === undefined) root = element;
    else parent.children.push(element);
    open.push(element);
  };
  parser.onclosetag = () => void open.pop();
  const addText = (piece: string) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += piece;
  };
  parser.ontext = addText;
  parser.oncdata = addText;

  try {
    parser.write(text.replace(/\r\n?/g, '\n')).close();
  } catch {
    throw malformed();
  }
  if (root === undefined) throw malformed();
  return root;
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed();
  }
}

function elementOf(tag: sax.QualifiedTag): Growing {
  const attributes = new Map<string, string>();
  for (const { local, uri, name, value } of Object.values(tag.attributes)) {
    if (uri === XMLNS || name === 'xmlns') continue;
    attributes.set(uri === '' ? local : `{${uri}}${local}`, value);
  }
  const nil = attributes.get(`{${XSI}}nil`);
  return { local: tag.local, uri: tag.uri, attributes, nil: nil === 'true' || nil === '1', children: [], text: '' };
}

function malformed(): HttpRefusal {
  return new HttpRefusal(400);
}
