/** Runs the JSON scanner over whole documents, for its tests. */
import { JobtailError } from '../../src/errors.ts';
import type { Lifted } from '../../src/remote/content/lifted.ts';
import { AnswerScanner, type LiftRule } from '../../src/remote/rest/answer/scanner.ts';
import { type Json, JsonNumber, JsonObject, LiftedText } from '../../src/remote/rest/requests.ts';
import type { Cuts } from './wire-scan.ts';

export const PARTS_RULE: LiftRule = { path: ['[]', 'content'], as: 'text' };
export const FILE_RULE: LiftRule = { path: [], as: 'base64' };
export const LIST_RULE: LiftRule = { path: ['[]'], as: 'record', orText: true };

/** Collects what is lifted: a text as its bytes, a record as lines `path=text`. */
class Collected implements Lifted {
  readonly texts: Buffer[] = [];
  readonly records: string[][] = [];
  readonly #path: string[] = [];
  #pieces: Buffer[] = [];
  #lines: string[] = [];

  begin(): void {
    this.#pieces = [];
    this.#lines = [];
  }

  readonly element = {
    open: (name: string): void => {
      this.#path.push(name);
      this.#pieces = [];
    },
    close: (): void => {
      if (this.#pieces.length > 0) this.#lines.push(`${this.#path.join('/')}=${Buffer.concat(this.#pieces)}`);
      this.#pieces = [];
      this.#path.pop();
    },
  };

  bytes(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes));
  }

  end(): void {
    this.texts.push(Buffer.concat(this.#pieces));
    this.records.push(this.#lines);
  }

  async flush(): Promise<void> {}
}

export interface ScannedJson {
  /** What remains, with numbers as JavaScript has them; a lifted text is `{lifted: index}`. */
  readonly rest: unknown;
  readonly json: Json | undefined;
  readonly texts: readonly Buffer[];
  readonly records: readonly (readonly string[])[];
}

/** The document, cut into chunks at the positions `cuts`, or after each so many bytes. */
export function scanJson(document: Buffer | string, rule?: LiftRule, cuts: Cuts = []): ScannedJson {
  const bytes = Buffer.from(document);
  const places = typeof cuts === 'number' ? Array.from(bytes, (_, index) => index * cuts) : cuts;
  const lifted = new Collected();
  const scanner = new AnswerScanner({ rule, lifted, maxBytes: 10_000_000 });
  let at = 0;
  for (const cut of [...places.filter((position) => position < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    // A copy, as from the network: nobody may rely on the bytes after the chunk.
    scanner.push(Buffer.from(bytes.subarray(at, cut)));
    at = cut;
  }
  const json = scanner.finish();
  return { rest: json === undefined ? undefined : plain(json), json, texts: lifted.texts, records: lifted.records };
}

/** What `scanJson` returns, or code and message of its error; any other error is thrown. */
export function tryScanJson(document: Buffer | string, rule?: LiftRule, cuts?: Cuts): ScannedJson | string {
  try {
    return scanJson(document, rule, cuts);
  } catch (error) {
    if (error instanceof JobtailError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

function plain(json: Json): unknown {
  if (json instanceof JsonNumber) return Number(json.text);
  if (json instanceof LiftedText) return { lifted: json.index };
  if (json instanceof JsonObject) return Object.fromEntries(json.members.map(([name, value]) => [name, plain(value)]));
  return Array.isArray(json) ? json.map(plain) : json;
}
