/**
 * Reads a SOAP response while it arrives. Lifts the bulky texts; rewrites the small rest in one form, independent of
 * prefixes, attributes and comments. Elements must be where the contract defines them, in its namespace; the first
 * violation is an error.
 */
import type { JobtailError } from '../../../errors.ts';
import type { Operation } from '../../../operations.ts';
import type { Secrets } from '../../../redact.ts';
import { Base64Decoder } from '../../content/chunks.ts';
import type { Lifted } from '../../content/lifted.ts';
import { malformed, tooLarge } from '../../wrong-answers.ts';
import { LIFTED, type LiftedElement, SOAP_NAMESPACES } from '../contract.ts';
import { FaultWords, unexpected } from '../faults.ts';
import { resolveReferences, reusedSpace, type StartTag } from './xml-text.ts';
import { isWhiteSpace, type XmlEvents, XmlTokenizer } from './xml-tokenizer.ts';

const ENVELOPES: readonly string[] = Object.values(SOAP_NAMESPACES);
const START_OF_REST = `<soap:Envelope xmlns:soap="${SOAP_NAMESPACES['1.1']}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`;

/** The `soap` package blocks the process for about 50 ms with a rest of this size. */
const MAX_REST_CHARACTERS = 512 * 1024;
/** Maximum elements and attributes in the whole document, with the header and the details of faults. */
const MAX_MARKUP = 10_000;
/** So many attributes of each element do not count: a listing may have hundreds of thousands of elements. */
const FREE_ATTRIBUTES = 2;

const MAX_OF_NAME = 100;
/** Maximum depth; records of jobs have six levels. */
const DEEPEST = 100;

/** The envelope and the body. */
const FRAMES_AROUND_CONTENT = 2;

export interface ScanOptions {
  readonly operation: Operation;
  readonly namespace: string;
  readonly lifted: Lifted | undefined;
  readonly maxBytes: number;
  readonly secrets: Secrets;
}

export type Rest = { readonly xml: string; readonly fault?: undefined } | { readonly fault: string };

interface Frame {
  readonly tag: StartTag;
  /** within: inside a lifted element with elements. words: the text of a fault. left-out: skipped with its content. */
  readonly kind: 'plain' | 'lifted' | 'within' | 'words' | 'left-out';
  readonly end: string;
}

export class AnswerScanner implements XmlEvents {
  readonly #options: ScanOptions;
  readonly #rule: LiftedElement | undefined;
  readonly #tokenizer: XmlTokenizer;
  readonly #frames: Frame[] = [];
  readonly #rest: string[] = [];
  #restCharacters = 0;
  #markup = 0;
  #plainBytes = 0;
  #empty = true;
  #bodySeen = false;
  #contentSeen = false;
  #fault: FaultWords | undefined;
  #base64: Base64Decoder | undefined;
  #liftedCount = 0;

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#rule = options.lifted === undefined ? undefined : LIFTED[options.operation];
    this.#tokenizer = new XmlTokenizer(this);
  }

  push(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#empty = this.#empty && isWhiteSpace(chunk);
    this.#tokenizer.push(chunk);
    if (this.#plainBytes > this.#options.maxBytes) throw tooLarge(`more than ${this.#options.maxBytes} bytes`);
  }

  /** Ends the response: returns its rest. @throws JobtailError malformed, unexpected-answer */
  finish(): Rest {
    if (this.#empty) throw this.#unexpected('it is empty');
    this.#tokenizer.finish();
    if (!this.#contentSeen) throw this.#unexpected('the body of its envelope is empty');
    if (this.#fault === undefined) return { xml: this.#rest.join('') };
    return { fault: this.#fault.text };
  }

  open(tag: StartTag): void {
    const parent = this.#frames.at(-1);
    if (parent?.tag.nil === true) throw malformed('an element inside a nil one');
    const frame = parent?.kind === 'left-out' ? parent : this.#frameOf(tag, parent);
    this.#frames.push(frame);
    const isLifted = frame.kind === 'lifted' || frame.kind === 'within';
    this.#markup += (isLifted ? 0 : 1) + Math.max(0, tag.attributes - FREE_ATTRIBUTES);
    if (this.#markup > MAX_MARKUP) throw tooLarge(`more than ${MAX_MARKUP} elements and attributes`);
  }

  text(bytes: Buffer, literal: boolean): void {
    const frame = this.#frames.at(-1);
    if (frame === undefined) return;
    if (frame.kind === 'within' && !frame.tag.nil) {
      this.#options.lifted?.bytes(literal ? bytes : resolveReferences(bytes));
    } else if (frame.kind === 'lifted' && this.#rule?.encoding !== 'elements') {
      this.#plainBytes -= bytes.length;
      const decoded = this.#base64?.push(bytes) ?? (literal ? bytes : resolveReferences(bytes, reusedSpace()));
      if (decoded.length > 0) this.#options.lifted?.bytes(decoded);
    } else if (frame.tag.nil || frame.kind === 'lifted' || this.#frames.length <= FRAMES_AROUND_CONTENT) {
      if (!isWhiteSpace(bytes)) throw malformed('text where none may stand');
    } else {
      const characters = literal ? bytes : resolveReferences(bytes);
      if (frame.kind === 'words') this.#fault?.add(this.#counted(characters.toString()));
      else if (frame.kind === 'plain' && this.#fault === undefined) this.#write(escapeText(characters.toString()));
    }
  }

  close(): void {
    const frame = this.#frames.pop();
    if (frame === undefined || frame === this.#frames.at(-1)) return;
    if (frame.kind === 'within') this.#options.lifted?.element?.close();
    if (frame.kind === 'lifted') {
      this.#base64?.finish();
      this.#options.lifted?.end();
    }
    this.#write(frame.end);
  }

  #frameOf(tag: StartTag, parent: Frame | undefined): Frame {
    if (parent?.kind === 'lifted' || parent?.kind === 'within') return this.#within(tag);
    switch (this.#frames.length) {
      case 0:
        return this.#envelope(tag);
      case 1:
        return this.#headerOrBody(tag);
      case FRAMES_AROUND_CONTENT:
        return this.#content(tag);
      default:
        return this.#inner(tag);
    }
  }

  #envelope(tag: StartTag): Frame {
    if (tag.localName.toLowerCase() === 'html') throw malformed('it looks like a web page');
    const isEnvelope = tag.localName === 'Envelope' && ENVELOPES.includes(tag.namespace);
    if (!isEnvelope) throw this.#unexpected(`it contains ${this.#nameOf(tag)} instead of a SOAP envelope`);
    this.#write(START_OF_REST);
    return { tag, kind: 'plain', end: '</soap:Envelope>' };
  }

  #headerOrBody(tag: StartTag): Frame {
    const inEnvelope = tag.namespace === this.#frames[0]?.tag.namespace && !this.#bodySeen;
    if (inEnvelope && tag.localName === 'Header') return { tag, kind: 'left-out', end: '' };
    if (!inEnvelope || tag.localName !== 'Body') throw this.#unexpected(`its envelope contains ${this.#nameOf(tag)}`);
    this.#bodySeen = true;
    this.#write('<soap:Body>');
    return { tag, kind: 'plain', end: '</soap:Body>' };
  }

  #content(tag: StartTag): Frame {
    const { operation, namespace } = this.#options;
    if (this.#contentSeen) throw this.#unexpected('the body of its envelope contains more than one element');
    this.#contentSeen = true;
    if (tag.namespace === this.#frames[0]?.tag.namespace && tag.localName === 'Fault') {
      this.#fault = new FaultWords();
      return { tag, kind: 'plain', end: '' };
    }
    if (tag.namespace !== namespace || tag.localName !== `${operation}Response`) {
      throw this.#unexpected(`it contains ${this.#nameOf(tag)} instead of ${operation}Response of ${namespace}`);
    }
    return this.#plain(tag);
  }

  #inner(tag: StartTag): Frame {
    if (this.#fault !== undefined) return this.#ofFault(tag, this.#fault);
    if (tag.namespace !== this.#options.namespace) throw this.#unexpected(`its response contains ${this.#nameOf(tag)}`);
    return this.#rule !== undefined && this.#isAt(this.#rule.path, tag)
      ? this.#lift(tag, this.#rule)
      : this.#plain(tag);
  }

  #ofFault(tag: StartTag, fault: FaultWords): Frame {
    // Markup within the text of a fault: the text stays.
    if (this.#frames.at(-1)?.kind === 'words') return { tag, kind: 'words', end: '' };
    const tags = [...this.#frames.slice(FRAMES_AROUND_CONTENT + 1).map((frame) => frame.tag), tag];
    const path = tags.map(({ localName }) => localName).join('/');
    return { tag, kind: fault.open(path), end: '' };
  }

  #isAt(path: readonly string[], tag: StartTag): boolean {
    const outer = this.#frames.length - (FRAMES_AROUND_CONTENT + 1);
    return (
      outer === path.length - 1 &&
      tag.localName === path[outer] &&
      path
        .slice(0, outer)
        .every((name, index) => name === this.#frames[index + FRAMES_AROUND_CONTENT + 1]?.tag.localName)
    );
  }

  /** A nil element counts as absent. */
  #lift(tag: StartTag, rule: LiftedElement): Frame {
    if (tag.nil) return { tag, kind: 'plain', end: '' };
    this.#base64 = rule.encoding === 'base64' ? new Base64Decoder() : undefined;
    this.#options.lifted?.begin();
    if (rule.indexed) this.#write(`<${tag.localName}>${this.#liftedCount}`);
    this.#liftedCount += 1;
    return { tag, kind: 'lifted', end: rule.indexed ? `</${tag.localName}>` : '' };
  }

  #within(tag: StartTag): Frame {
    if (this.#rule?.encoding !== 'elements') throw malformed('an element inside a text');
    if (this.#frames.length > DEEPEST) throw malformed(`more than ${DEEPEST} elements in each other`);
    this.#options.lifted?.element?.open(tag.namespace === this.#options.namespace ? tag.localName : '');
    return { tag, kind: 'within', end: '' };
  }

  #plain(tag: StartTag): Frame {
    this.#write(tag.nil ? `<${tag.localName} xsi:nil="true">` : `<${tag.localName}>`);
    return { tag, kind: 'plain', end: `</${tag.localName}>` };
  }

  #unexpected(what: string): JobtailError {
    return unexpected(this.#options.operation, what);
  }

  #nameOf({ localName, namespace }: StartTag): string {
    const { secrets } = this.#options;
    const name = `the element ${secrets.safeText(localName, MAX_OF_NAME)}`;
    return namespace === '' ? name : `${name} of ${secrets.safeText(namespace)}`;
  }

  #write(text: string): void {
    if (text !== '') this.#rest.push(this.#counted(text));
  }

  #counted(text: string): string {
    this.#restCharacters += text.length;
    if (this.#restCharacters > MAX_REST_CHARACTERS) throw tooLarge(`more than ${MAX_REST_CHARACTERS} characters`);
    return text;
  }
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
