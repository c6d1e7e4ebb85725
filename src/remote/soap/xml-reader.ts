/**
 * Reads a SOAP response while it arrives. The package `sax` reads the tags; the texts between them stay bytes here, and
 * bulky ones are lifted. Elements must be where the contract defines them; the first violation is an error. Their
 * prefixes do not matter: the namespaces of envelope and contract must be declared around the response.
 */
import { isUtf8 } from 'node:buffer';
import sax, { type Tag } from 'sax';
import { endOfWholeUtf8 } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Secrets } from '../../redact.ts';
import { Base64Decoder, Chunks, isWhiteSpace } from '../content/chunks.ts';
import { CONTENT, MAX_DEPTH, MAX_ITEM_BYTES, type ReaderOptions, textOf, type Value } from '../content/values.ts';
import { malformed, tooLarge } from '../wrong-responses.ts';
import { SOAP_NAMESPACES } from './contract.ts';
import { faultWords, unexpected } from './faults.ts';
import { endOfWholeCharacters, NOT_MARKUP, resolveReferences } from './xml-text.ts';

const ENVELOPES: readonly string[] = Object.values(SOAP_NAMESPACES);

/** Maximum length of a tag, a comment or an instruction. */
const MAX_TAG_BYTES = 64 * 1024;
/** Memory of an element or attribute. */
const BYTES_PER_NAME = 64;

const LESS_THAN = 0x3c;
const GREATER_THAN = 0x3e;
const BANG = 0x21;
const COMMENT = Buffer.from('<!--');
const CDATA = Buffer.from('<![CDATA[');
const END_OF_CDATA = ']]>';

const LISTED = Buffer.from('<string>');
const END_OF_LISTED = Buffer.from('</string>');
const LISTED_NAME = /<string>([^<&]*)<\/string>[ \t\r\n]*/gy;

const WORDS_OF_FAULT = ['faultcode', 'faultstring', 'Value', 'Text'];

/** The number of elements around an element. */
const DEPTH = { body: 1, response: 2, result: 3, item: 4, member: 5 } as const;

interface XmlReaderOptions extends ReaderOptions {
  readonly operation: Operation;
  readonly namespace: string;
  readonly secrets: Secrets;
}

/** `value`: the result of the operation, without items that were taken. `fault`: the words of a fault. */
type XmlRest = { readonly value: Value } | { readonly fault: string };

interface Open {
  /** outer: the envelope and its body. lifted: a bulky text. skipped: with all that is in it. */
  readonly kind: 'outer' | 'value' | 'nil' | 'lifted' | 'skipped';
  /** Its name without the prefix. */
  readonly name: string;
  fields: Map<string, Value> | undefined;
  text: string;
}

export class XmlReader {
  readonly #options: XmlReaderOptions;
  readonly #chunks = new Chunks();
  readonly #take = (bytes: Buffer, at: number) => this.#step(bytes, at);
  readonly #tags = sax.parser(true, { position: false });
  readonly #open: Open[] = [];
  /** The namespaces of envelope, body and response. */
  readonly #declared = new Set<string>();
  #content: Open | undefined;
  #isFault = false;
  #isEmpty = true;
  #hasRoot = false;
  #hasBody = false;
  #isInTag = false;
  /** Whether `sax` has reported the tag: of a comment, before its `>`. */
  #isReported = false;
  #tagBytes = 0;
  #isInCdata = false;
  #itemBytes = 0;
  #plainBytes = 0;
  #base64: Base64Decoder | undefined;
  #liftedCount = 0;
  #text: number | undefined;

  constructor(options: XmlReaderOptions) {
    this.#options = options;
    this.#tags.onopentag = (tag) => this.#opened(tag as Tag);
    this.#tags.onclosetag = () => this.#closed();
    this.#tags.oncomment = () => {
      this.#isReported = true;
    };
    this.#tags.onprocessinginstruction = ({ name, body }) => this.#instruction(name, body);
    this.#tags.onerror = (error) => {
      throw error;
    };
  }

  /** @throws JobtailError malformed, unexpected-answer, answer-too-large */
  push(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#isEmpty = this.#isEmpty && isWhiteSpace(chunk);
    this.#chunks.push(chunk, this.#take);
    if (this.#plainBytes > this.#options.maxBytes) throw tooLarge(`more than ${this.#options.maxBytes} bytes`);
  }

  /** @throws JobtailError malformed, unexpected-answer */
  finish(): XmlRest {
    if (this.#isEmpty) throw this.#unexpected('it is empty');
    const isCut = this.#open.length > 0 || this.#isInTag || this.#chunks.restBytes > 0;
    if (isCut || !this.#hasRoot) throw malformed('it ends before its last tag');
    if (this.#content === undefined) throw this.#unexpected('the body of its envelope is empty');
    const { fields = new Map() } = this.#content;
    if (this.#isFault) return { fault: faultWords(fields) };
    const value = fields.get(`${this.#options.operation}Result`.toLowerCase()) ?? null;
    if (this.#options.onItem !== undefined && (textOf(value) ?? '').trim() !== '')
      throw malformed('text beside elements');
    return { value };
  }

  /** Reads one piece; returns where the next one begins; `at` if it needs more bytes. */
  #step(bytes: Buffer, at: number): number {
    if (this.#isInTag) return this.#tag(bytes, at);
    if (this.#isInCdata) return this.#cdata(bytes, at);
    if (bytes[at] !== LESS_THAN) return this.#characters(bytes, at);
    if (bytes[at + 1] === undefined) return at;
    const next = this.#names(bytes, at);
    if (next > at) return next;
    if (bytes[at + 1] === BANG) {
      const start = bytes.subarray(at, at + CDATA.length);
      if (start.equals(CDATA)) {
        this.#isInCdata = true;
        return at + CDATA.length;
      }
      const isCut = start.length < CDATA.length && start.equals(CDATA.subarray(0, start.length));
      if (isCut || (start.length < COMMENT.length && start.equals(COMMENT.subarray(0, start.length)))) return at;
      if (!start.subarray(0, COMMENT.length).equals(COMMENT))
        throw malformed('a document type or another declaration that is not allowed in SOAP');
    }
    this.#isInTag = true;
    this.#isReported = false;
    this.#tagBytes = 0;
    if (bytes[at + 1] !== BANG) return this.#tag(bytes, at);
    // `sax` does not report an empty comment.
    this.#tags.write('<!-- ');
    return at + COMMENT.length;
  }

  /** Reads names of a listing in the usual form, without `sax` for each tag; returns where something else begins. */
  #names(bytes: Buffer, at: number): number {
    const { onItem } = this.#options;
    const isInList = onItem !== undefined && !this.#isFault && this.#open.length === DEPTH.item;
    if (!isInList || this.#open.at(-1)?.kind !== 'value' || !bytes.subarray(at, at + LISTED.length).equals(LISTED))
      return at;
    const piece = bytes.subarray(at, bytes.lastIndexOf(END_OF_LISTED) + END_OF_LISTED.length);
    if (!isUtf8(piece)) return at;
    const text = piece.toString();
    let end = 0;
    for (const { 0: all, 1: name = '' } of text.matchAll(LISTED_NAME)) {
      onItem(name, undefined);
      end += all.length;
    }
    return at + (end === text.length ? piece.length : Buffer.byteLength(text.slice(0, end)));
  }

  /** A `>` may end the tag, comment or instruction: then `sax` reports it. */
  #tag(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(GREATER_THAN, at) + 1;
    const to = end === 0 ? endOfWholeUtf8(bytes, at) : end;
    const piece = bytes.subarray(at, to);
    this.#tagBytes += piece.length;
    if (this.#tagBytes > MAX_TAG_BYTES) throw malformed(`a tag or a comment longer than ${MAX_TAG_BYTES} bytes`);
    const text = piece.toString();
    if (NOT_MARKUP.test(text)) throw malformed('bytes that are not allowed inside of markup');
    try {
      this.#tags.write(text);
    } catch (error) {
      throw error instanceof JobtailError ? error : malformed('tags that are no XML');
    }
    if (end > 0 && this.#isReported) this.#isInTag = false;
    return to;
  }

  #instruction(name: string, body: string): void {
    this.#isReported = true;
    if (name.toLowerCase() !== 'xml') return;
    if (this.#hasRoot) throw malformed('a wrong XML declaration');
    const [, encoding = 'utf-8'] = /encoding\s*=\s*["']([^"']*)/.exec(body) ?? [];
    if (!/^(?:utf-?8|us-ascii)$/i.test(encoding)) throw malformed('an encoding that is not UTF-8');
  }

  #opened({ name, attributes }: Tag): void {
    this.#isReported = true;
    if (this.#open.length === 0 && this.#hasRoot) throw malformed('something after the root element');
    if (this.#open.length === MAX_DEPTH) throw malformed(`elements nested deeper than ${MAX_DEPTH}`);
    this.#hasRoot = true;
    const given = Object.entries(attributes);
    this.#count(BYTES_PER_NAME * (1 + given.length));
    const isNil = given.some(([key, value]) => /:nil$/.test(key) && /^\s*(?:true|1)\s*$/.test(value));
    if (this.#open.every(({ kind }) => kind === 'outer'))
      for (const [key, value] of given) if (/^xmlns(?::|$)/.test(key)) this.#declared.add(value);
    const local = name.slice(name.indexOf(':') + 1);
    this.#open.push({ kind: this.#kindOf(local, isNil), name: local, fields: undefined, text: '' });
  }

  #kindOf(name: string, isNil: boolean): Open['kind'] {
    switch (this.#open.at(-1)?.kind) {
      case undefined:
        return this.#envelope(name);
      case 'outer':
        return this.#open.length === DEPTH.body ? this.#headerOrBody(name) : this.#response(name, isNil);
      case 'skipped':
        return 'skipped';
      case 'lifted':
        throw malformed('an element inside a text');
      case 'nil':
        throw malformed('an element inside a nil one');
      case 'value':
        // A nil element counts as absent.
        if (isNil) return 'nil';
        return !this.#isFault && this.#isBulky(name) ? this.#beginText() : 'value';
    }
  }

  #envelope(name: string): Open['kind'] {
    if (name.toLowerCase() === 'html') throw malformed('it looks like a web page');
    if (name !== 'Envelope' || !ENVELOPES.some((namespace) => this.#declared.has(namespace)))
      throw this.#unexpected(`it contains ${this.#shown(name)} instead of a SOAP envelope`);
    return 'outer';
  }

  #headerOrBody(name: string): Open['kind'] {
    if (name === 'Header' && !this.#hasBody) return 'skipped';
    if (name !== 'Body' || this.#hasBody) throw this.#unexpected(`its envelope contains ${this.#shown(name)}`);
    this.#hasBody = true;
    return 'outer';
  }

  #response(name: string, isNil: boolean): Open['kind'] {
    const { operation, namespace } = this.#options;
    if (this.#content !== undefined) throw this.#unexpected('the body of its envelope contains more than one element');
    this.#isFault = name === 'Fault';
    const isOther = name !== `${operation}Response` || !this.#declared.has(namespace);
    if (!this.#isFault && isOther) {
      const namespaces = this.#options.secrets.safeText([...this.#declared].join(', '));
      const found = `${this.#shown(name)} with the namespaces ${namespaces}`;
      throw this.#unexpected(`it contains ${found} instead of ${operation}Response of ${namespace}`);
    }
    return isNil ? 'nil' : 'value';
  }

  #isBulky(name: string): boolean {
    const { lifted } = this.#options;
    if (lifted === undefined) return false;
    if (lifted.encoding === 'base64') return this.#open.length === DEPTH.result;
    return this.#open.length === DEPTH.member && name === CONTENT;
  }

  #beginText(): 'lifted' {
    if (this.#text !== undefined) throw malformed('an entry with more than one content');
    this.#text = this.#liftedCount++;
    this.#base64 = this.#options.lifted?.encoding === 'base64' ? new Base64Decoder() : undefined;
    this.#options.lifted?.begin();
    return 'lifted';
  }

  #closed(): void {
    this.#isReported = true;
    const closed = this.#open.pop();
    if (closed === undefined || closed.kind === 'skipped' || closed.kind === 'outer') return;
    if (closed.kind === 'lifted') {
      this.#base64?.finish();
      this.#options.lifted?.end();
    }
    const depth = this.#open.length;
    const parent = this.#open.at(-1);
    // Words may have markup in them.
    if (this.#isFault && parent !== undefined) parent.text += closed.text;
    if (depth === DEPTH.response) this.#content = closed;
    else if (depth === DEPTH.item && this.#options.onItem !== undefined && !this.#isFault) this.#endItem(closed);
    else this.#place(closed);
  }

  #endItem(closed: Open): void {
    this.#options.onItem?.(this.#valueOf(closed), this.#text);
    this.#text = undefined;
    this.#itemBytes = 0;
  }

  #place(closed: Open): void {
    const parent = this.#open.at(-1);
    if (parent === undefined) return;
    parent.fields ??= new Map();
    const name = closed.name.toLowerCase();
    const before = parent.fields.get(name);
    const value = this.#valueOf(closed);
    if (before === undefined) parent.fields.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else parent.fields.set(name, [before, value]);
  }

  #valueOf({ kind, name, fields, text }: Open): Value {
    if (kind === 'nil') return null;
    if (fields === undefined || (this.#isFault && WORDS_OF_FAULT.includes(name))) return text;
    if (text.trim() !== '' && !this.#isFault) throw malformed('text beside elements');
    return fields;
  }

  #characters(bytes: Buffer, at: number): number {
    const tag = bytes.indexOf(LESS_THAN, at);
    const end = tag === -1 ? endOfWholeCharacters(bytes, at) : tag;
    if (end > at) this.#piece(bytes.subarray(at, end), false);
    return end;
  }

  #cdata(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(END_OF_CDATA, at);
    // The last bytes may be the start of the end mark, or of a character.
    const max = Math.max(at, bytes.length - END_OF_CDATA.length + 1);
    const end = found === -1 ? endOfWholeUtf8(bytes.subarray(0, max), at) : found;
    if (end > at) this.#piece(bytes.subarray(at, end), true);
    if (found === -1) return end;
    this.#isInCdata = false;
    return end + END_OF_CDATA.length;
  }

  /** `isLiteral`: references are not resolved. */
  #piece(bytes: Buffer, isLiteral: boolean): void {
    if (!isUtf8(bytes)) throw malformed('bytes that are not UTF-8');
    const open = this.#open.at(-1);
    switch (open?.kind) {
      case 'skipped':
        return;
      case 'lifted': {
        this.#plainBytes -= bytes.length;
        const decoded = this.#base64?.push(bytes) ?? (isLiteral ? bytes : resolveReferences(bytes));
        if (decoded.length > 0) this.#options.lifted?.bytes(decoded);
        return;
      }
      case 'value':
        this.#count(bytes.length);
        open.text += (isLiteral ? bytes : resolveReferences(bytes)).toString();
        return;
      default:
        if (!isWhiteSpace(bytes) || isLiteral) throw malformed('text where none may stand');
    }
  }

  #count(bytes: number): void {
    this.#itemBytes += bytes;
    if (this.#itemBytes > MAX_ITEM_BYTES) throw tooLarge(`more than ${MAX_ITEM_BYTES} bytes in one item`);
  }

  #unexpected(what: string): JobtailError {
    return unexpected(this.#options.operation, what);
  }

  #shown(name: string): string {
    return `the element ${this.#options.secrets.safeText(name)}`;
  }
}
