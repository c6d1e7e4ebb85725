/**
 * Reads a JSON response while it arrives: lifts the texts or records that the call names; the small rest becomes plain
 * values.
 */
import { JobtailError } from '../../../errors.ts';
import { Base64Decoder } from '../../content/chunks.ts';
import type { Lifted } from '../../content/lifted.ts';
import { malformed, tooLarge } from '../../wrong-answers.ts';
import { type Json, JsonNumber, JsonObject, LiftedText } from '../requests.ts';
import { type JsonEvents, JsonTokenizer } from './json-tokenizer.ts';

/** Maximum values that are not lifted. */
const MAX_VALUES = 10_000;
const MAX_REST_BYTES = 512 * 1024;
const MAX_MEMBERS = 256;

/** A list item, in a path. */
export const ITEM = '[]';

export interface LiftRule {
  /** From the whole document down: member names in lower case, or `ITEM`. */
  readonly path: readonly string[];
  /**
   * text: a string; its index replaces it in the rest. base64: a decoded string. record: an object, reported with its
   * member names in lower case, and with `ITEM` for list items. The last two leave nothing in the rest.
   */
  readonly as: 'text' | 'base64' | 'record';
  readonly orText?: boolean;
}

export interface ScanOptions {
  readonly rule: LiftRule | undefined;
  readonly lifted: Lifted | undefined;
  readonly maxBytes: number;
}

interface Frame {
  readonly value: JsonObject | Json[] | undefined;
  readonly names: Set<string> | undefined;
  member: string;
}

type TextKind = 'rest' | LiftRule['as'];

export class AnswerScanner implements JsonEvents {
  readonly #options: ScanOptions;
  readonly #tokenizer: JsonTokenizer;
  readonly #frames: Frame[] = [];
  /** Open frames around the record; undefined outside of records. */
  #recordDepth: number | undefined;
  #rest: Json | undefined;
  #values = 0;
  #restBytes = 0;
  #plainBytes = 0;
  #textKind: TextKind = 'rest';
  #pieces: Buffer[] = [];
  #base64: Base64Decoder | undefined;
  #liftedCount = 0;

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#tokenizer = new JsonTokenizer(this);
  }

  push(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#tokenizer.push(chunk);
    if (this.#plainBytes > this.#options.maxBytes) throw tooLarge(`more than ${this.#options.maxBytes} bytes`);
  }

  /** Ends the response: returns its rest, or undefined if all of it was lifted. @throws JobtailError malformed */
  finish(): Json | undefined {
    this.#tokenizer.finish();
    return this.#rest;
  }

  open(kind: 'object' | 'list'): void {
    if (this.#recordDepth === undefined) {
      if (kind === 'object' && this.#isAtRule('record')) this.#beginRecord();
      else this.#count(0);
    } else {
      this.#lifted.element?.open(this.#nameHere());
    }
    const isOfRecord = this.#recordDepth !== undefined;
    this.#frames.push({
      value: isOfRecord ? undefined : kind === 'object' ? new JsonObject() : [],
      names: kind === 'object' ? new Set() : undefined,
      member: '',
    });
  }

  member(name: string): void {
    const frame = this.#frames.at(-1);
    const key = name.toLowerCase();
    if (frame?.names === undefined) return;
    if (frame.names.has(key)) throw malformed('an object with two members of one name');
    if (frame.names.size === MAX_MEMBERS) throw tooLarge(`an object of more than ${MAX_MEMBERS} members`);
    frame.names.add(key);
    frame.member = name;
    if (this.#recordDepth === undefined) this.#countBytes(name.length);
  }

  close(): void {
    const frame = this.#frames.pop();
    if (frame === undefined) return;
    if (this.#recordDepth === undefined) this.#place(frame.value);
    else if (this.#frames.length > this.#recordDepth) this.#lifted.element?.close();
    else this.#endRecord();
  }

  beginText(): boolean {
    this.#textKind = this.#kindOfText();
    this.#pieces = [];
    switch (this.#textKind) {
      case 'rest':
        this.#count(0);
        break;
      case 'record':
        if (this.#recordDepth === undefined) this.#lifted.begin();
        else this.#lifted.element?.open(this.#nameHere());
        break;
      default:
        this.#count(0);
        this.#base64 = this.#textKind === 'base64' ? new Base64Decoder() : undefined;
        this.#lifted.begin();
    }
    return this.#textKind === 'base64';
  }

  text(bytes: Buffer, length: number): void {
    switch (this.#textKind) {
      case 'rest':
        this.#countBytes(bytes.length);
        this.#pieces.push(Buffer.from(bytes));
        break;
      case 'record':
        this.#lifted.bytes(bytes);
        break;
      default: {
        this.#plainBytes -= length;
        const decoded = this.#base64?.push(bytes) ?? bytes;
        if (decoded.length > 0) this.#lifted.bytes(decoded);
      }
    }
  }

  endText(): void {
    switch (this.#textKind) {
      case 'rest':
        this.#place(Buffer.concat(this.#pieces).toString());
        break;
      case 'record':
        if (this.#recordDepth === undefined) this.#lifted.end();
        else this.#lifted.element?.close();
        break;
      default:
        this.#base64?.finish();
        this.#lifted.end();
        if (this.#textKind === 'text') this.#place(new LiftedText(this.#liftedCount++));
    }
  }

  literal(text: string): void {
    if (this.#recordDepth === undefined) {
      this.#count(text.length);
      this.#place(literalOf(text));
    } else if (text !== 'null') {
      this.#lifted.element?.open(this.#nameHere());
      this.#lifted.bytes(Buffer.from(text));
      this.#lifted.element?.close();
    }
  }

  get #lifted(): Lifted {
    const { lifted } = this.#options;
    if (lifted === undefined) throw new JobtailError('internal', 'a lifted text has no receiver');
    return lifted;
  }

  #kindOfText(): TextKind {
    if (this.#recordDepth !== undefined) return 'record';
    const { rule } = this.#options;
    if (rule === undefined || (rule.as === 'record' && rule.orText !== true)) return 'rest';
    return this.#isAtRule(rule.as) ? rule.as : 'rest';
  }

  #isAtRule(as: LiftRule['as']): boolean {
    const { rule } = this.#options;
    return (
      rule?.as === as &&
      rule.path.length === this.#frames.length &&
      rule.path.every((name, index) => name === nameIn(this.#frames[index]))
    );
  }

  #beginRecord(): void {
    this.#recordDepth = this.#frames.length;
    this.#lifted.begin();
  }

  #endRecord(): void {
    this.#recordDepth = undefined;
    this.#lifted.end();
  }

  #nameHere(): string {
    return nameIn(this.#frames.at(-1)) ?? '';
  }

  #place(value: Json | undefined): void {
    if (value === undefined) return;
    const around = this.#frames.at(-1);
    if (around === undefined) this.#rest = value;
    else if (around.value instanceof JsonObject) around.value.set(around.member, value);
    else around.value?.push(value);
  }

  #count(bytes: number): void {
    this.#values += 1;
    if (this.#values > MAX_VALUES) throw tooLarge(`more than ${MAX_VALUES} values`);
    this.#countBytes(bytes);
  }

  #countBytes(bytes: number): void {
    this.#restBytes += bytes;
    if (this.#restBytes > MAX_REST_BYTES) throw tooLarge(`more than ${MAX_REST_BYTES} bytes`);
  }
}

function nameIn(frame: Frame | undefined): string | undefined {
  return frame?.names === undefined ? frame && ITEM : frame.member.toLowerCase();
}

function literalOf(text: string): Json {
  switch (text) {
    case 'true':
      return true;
    case 'false':
      return false;
    case 'null':
      return null;
    default:
      return new JsonNumber(text);
  }
}
