/**
 * Splits an XML document into tags and text while its bytes arrive; the first violation is an error. Memory is bounded:
 * only a tag, reference or character cut by a network chunk is kept.
 */
import { isUtf8 } from 'node:buffer';
import { endOfWholeUtf8 } from '../../../bytes.ts';
import { Chunks } from '../../content/chunks.ts';
import { malformed } from '../../wrong-answers.ts';
import { endOfWholeCharacters, Namespaces, NOT_XML, parseEndTag, parseStartTag, type StartTag } from './xml-text.ts';

/** Maximum length of a tag or an instruction. */
const MAX_TAG_BYTES = 16 * 1024;
const MAX_DEPTH = 64;

const LESS_THAN = 0x3c;
const GREATER_THAN = 0x3e;
const SLASH = 0x2f;
const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BANG = 0x21;
const QUESTION = 0x3f;

const NOT_SCANNED: { readonly length: number; readonly quote: number } = { length: 1, quote: 0 };

const COMMENT = Buffer.from('<!--');
const CDATA = Buffer.from('<![CDATA[');
const INSTRUCTION = /^<\?([A-Za-z_:\u0080-\u{10FFFF}][\w:.\u0080-\u{10FFFF}-]*)(?:[ \t\r\n]|\?>$)/u;
const XML_DECLARATION =
  /^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*["']1\.[0-9]+["'](?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*["']([\w.:-]+)["'])?(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*["'](?:yes|no)["'])?[ \t\r\n]*\?>$/;

export interface XmlEvents {
  open(tag: StartTag): void;
  /** Characters inside the root element, never cut; `literal`: references are not resolved (CDATA). */
  text(bytes: Buffer, literal: boolean): void;
  close(): void;
}

export class XmlTokenizer {
  readonly #events: XmlEvents;
  readonly #open: string[] = [];
  readonly #namespaces = new Namespaces();
  readonly #chunks = new Chunks();
  readonly #take = (bytes: Buffer, at: number) => this.#step(bytes, at);
  /** How far an incomplete tag was scanned, and the open quote there: it may arrive byte by byte. */
  #scanned = NOT_SCANNED;
  /** Inside a section, only its end counts. */
  #section: 'comment' | 'cdata' | undefined;
  #rootSeen = false;

  constructor(events: XmlEvents) {
    this.#events = events;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk, this.#take);
    if (this.#chunks.restBytes > MAX_TAG_BYTES) throw malformed(`a tag longer than ${MAX_TAG_BYTES} bytes`);
  }

  finish(): void {
    if (!this.#rootSeen || this.#open.length > 0 || this.#section !== undefined || this.#chunks.restBytes > 0) {
      throw malformed('it ends before its last tag');
    }
  }

  /** Reads one piece; returns where the next one begins; `at` if it needs more bytes. */
  #step(bytes: Buffer, at: number): number {
    if (this.#section !== undefined) return this.#insideSection(bytes, at, this.#section);
    if (bytes[at] !== LESS_THAN) return this.#characters(bytes, at);
    switch (bytes[at + 1]) {
      case undefined:
        return at;
      case BANG:
        return this.#beginSection(bytes, at);
      case QUESTION:
        return this.#instruction(bytes, at);
      default:
        return this.#tag(bytes, at);
    }
  }

  #characters(bytes: Buffer, at: number): number {
    const tag = bytes.indexOf(LESS_THAN, at);
    const end = tag === -1 ? endOfWholeCharacters(bytes, at) : tag;
    if (end === at) return at;
    this.#text(bytes.subarray(at, end), false);
    return end;
  }

  #text(bytes: Buffer, literal: boolean): void {
    if (!isUtf8(bytes)) throw malformed('bytes that are not UTF-8');
    if (this.#open.length > 0) this.#events.text(bytes, literal);
    else if (!isWhiteSpace(bytes)) throw malformed('something besides white space outside the root element');
  }

  #beginSection(bytes: Buffer, at: number): number {
    const start = bytes.subarray(at, at + CDATA.length);
    if (start.subarray(0, COMMENT.length).equals(COMMENT)) {
      this.#section = 'comment';
      return at + COMMENT.length;
    }
    if (start.equals(CDATA) && this.#open.length > 0) {
      this.#section = 'cdata';
      return at + CDATA.length;
    }
    const known = start.equals(COMMENT.subarray(0, start.length)) || start.equals(CDATA.subarray(0, start.length));
    if (known && start.length < CDATA.length) return at;
    throw malformed('a document type or another declaration that is not allowed in SOAP');
  }

  #insideSection(bytes: Buffer, at: number, section: 'comment' | 'cdata'): number {
    const found = bytes.indexOf(section === 'comment' ? '--' : ']]>', at);
    if (found === -1) {
      // The last bytes may be the start of the end mark, or of a character.
      const end = endOfWholeUtf8(bytes.subarray(0, Math.max(at, bytes.length - 2)), at);
      this.#insidePiece(bytes.subarray(at, end), section);
      return end;
    }
    this.#insidePiece(bytes.subarray(at, found), section);
    if (section === 'comment') {
      // `--` in a comment would hide everything up to the end of the next comment.
      if (bytes.length < found + 3) return found;
      if (bytes[found + 2] !== GREATER_THAN) throw malformed('a -- inside a comment');
    }
    this.#section = undefined;
    return found + 3;
  }

  #insidePiece(bytes: Buffer, section: 'comment' | 'cdata'): void {
    if (bytes.length === 0) return;
    if (section === 'cdata') this.#text(bytes, true);
    else markupText(bytes);
  }

  #instruction(bytes: Buffer, at: number): number {
    const end = bytes.indexOf('?>', at + Math.max(2, this.#scanned.length - 1));
    this.#scanned = end === -1 ? { length: bytes.length - at, quote: 0 } : NOT_SCANNED;
    if (end === -1) return at;
    if (end + 2 - at > MAX_TAG_BYTES) throw malformed(`an instruction longer than ${MAX_TAG_BYTES} bytes`);
    const text = markupText(bytes.subarray(at, end + 2));
    const target = INSTRUCTION.exec(text)?.[1];
    if (target === undefined) throw malformed('a wrong processing instruction');
    if (target.toLowerCase() !== 'xml') return end + 2;
    const declaration = XML_DECLARATION.exec(text);
    if (declaration === null || this.#rootSeen) throw malformed('a wrong XML declaration');
    const encoding = (declaration[1] ?? 'utf-8').toLowerCase();
    if (encoding !== 'utf-8' && encoding !== 'utf8' && encoding !== 'us-ascii') {
      throw malformed('an encoding that is not UTF-8');
    }
    return end + 2;
  }

  #tag(bytes: Buffer, at: number): number {
    const end = this.#endOfTag(bytes, at);
    if (end === -1) return at;
    if (end - at > MAX_TAG_BYTES) throw malformed(`a tag longer than ${MAX_TAG_BYTES} bytes`);
    const tag = markupText(bytes.subarray(at, end));
    if (bytes[at + 1] === SLASH) this.#closeElement(parseEndTag(tag));
    else this.#openElement(tag);
    return end;
  }

  /** After the `>` that ends the tag, outside of quotes; -1 if it has not arrived. */
  #endOfTag(bytes: Buffer, at: number): number {
    let { quote } = this.#scanned;
    for (let index = at + this.#scanned.length; index < bytes.length; index += 1) {
      const byte = bytes[index] ?? 0;
      if (quote !== 0) {
        if (byte === quote) quote = 0;
      } else if (byte === QUOTE || byte === APOSTROPHE) {
        quote = byte;
      } else if (byte === GREATER_THAN) {
        this.#scanned = NOT_SCANNED;
        return index + 1;
      }
    }
    this.#scanned = { length: bytes.length - at, quote };
    return -1;
  }

  #openElement(text: string): void {
    if (this.#open.length === 0 && this.#rootSeen) throw malformed('something after the root element');
    if (this.#open.length === MAX_DEPTH) throw malformed(`elements nested deeper than ${MAX_DEPTH}`);
    const tag = parseStartTag(text, this.#namespaces);
    this.#rootSeen = true;
    this.#open.push(tag.qualifiedName);
    this.#events.open(tag);
    if (tag.empty) this.#closeElement(tag.qualifiedName);
  }

  #closeElement(qualifiedName: string): void {
    if (this.#open.pop() !== qualifiedName) throw malformed('an end tag that closes another element');
    this.#namespaces.close();
    this.#events.close();
  }
}

export function isWhiteSpace(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

function markupText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw malformed('bytes that are not UTF-8');
  const text = bytes.toString();
  if (NOT_XML.test(text)) throw malformed('a control character inside of markup');
  return text;
}
