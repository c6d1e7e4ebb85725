/**
 * Reads a JSON answer while its bytes arrive. What the rule of the call names is lifted out of it: bulky texts, or
 * very many records; what remains, the rest, is small and becomes plain values.
 */
import { JobtailError } from '../../../errors.ts';
import { Base64Decoder } from '../../content/chunks.ts';
import type { Lifted } from '../../content/lifted.ts';
import { malformed, tooLarge } from '../../wrong-answers.ts';
import { type Json, JsonNumber, JsonObject, LiftedText } from '../requests.ts';
import { type JsonEvents, JsonTokenizer } from './json-tokenizer.ts';

/** Of all values that are not lifted. */
const MAX_VALUES = 10_000;
const MAX_REST_BYTES = 512 * 1024;
/** Of one object. */
const MAX_MEMBERS = 256;

/** An item of a list, where a path goes through it. */
export const ITEM = '[]';

/** What of an answer is lifted. */
export interface LiftRule {
  /** From the whole document down: names of members in lower case, or `ITEM`. */
  readonly path: readonly string[];
  /**
   * text: a string, whose index stands for it in the rest. base64: one that is decoded. record: an object, whose
   * members are reported by their names in lower case, and items of lists in it as `ITEM`. The last two leave nothing
   * in the rest.
   */
  readonly as: 'text' | 'base64' | 'record';
  /** A string in the place of a record is lifted, too. */
  readonly orText?: boolean;
}

export interface ScanOptions {
  readonly rule: LiftRule | undefined;
  /** Receives what is lifted. */
  readonly lifted: Lifted | undefined;
  /** Bytes allowed besides lifted texts. */
  readonly maxBytes: number;
}

/** An open object or list. */
interface Frame {
  /** Undefined in a record. */
  readonly value: JsonObject | Json[] | undefined;
  /** Of an object: its names so far, in lower case. */
  readonly names: Set<string> | undefined;
  /** Of the member that comes, as it was written. */
  member: string;
}

/** What the text that comes in is. */
type TextKind = 'rest' | LiftRule['as'];

export class AnswerScanner implements JsonEvents {
  readonly #options: ScanOptions;
  readonly #tokenizer: JsonTokenizer;
  readonly #frames: Frame[] = [];
  /** Frames around the record that is open; undefined if none is. */
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

  /** Takes the next bytes. @throws JobtailError malformed, answer-too-large */
  push(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#tokenizer.push(chunk);
    if (this.#plainBytes > this.#options.maxBytes) throw tooLarge(`more than ${this.#options.maxBytes} bytes`);
  }

  /** The answer is over: its rest; undefined if all of it was lifted. @throws JobtailError malformed */
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

  /** What the value that comes is in the object or list around it. */
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
