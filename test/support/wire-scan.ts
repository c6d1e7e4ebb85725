/** Runs the scanner over whole documents, for its tests. */
import { JobtailError } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';
import { Secrets } from '../../src/redact.ts';
import type { Lifted } from '../../src/remote/content/lifted.ts';
import { AnswerScanner } from '../../src/remote/soap/answer/scanner.ts';
import { NAMESPACE } from './wire-envelopes.ts';

export interface Scanned {
  /** What remains of the document; of a fault, its words. */
  readonly rest: string;
  readonly texts: readonly Buffer[];
}

export type Cuts = readonly number[] | number;

/** Collects lifted texts. */
class Collected implements Lifted {
  readonly texts: Buffer[] = [];
  #pieces: Buffer[] = [];

  begin(): void {
    this.#pieces = [];
  }
  bytes(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes));
  }
  end(): void {
    this.texts.push(Buffer.concat(this.#pieces));
  }
  async flush(): Promise<void> {}
}

/** The document, cut into chunks at the positions `cuts`, or after each so many bytes. */
export function scan(operation: Operation, document: Buffer | string, cuts: Cuts = []): Scanned {
  const bytes = Buffer.from(document);
  const places = typeof cuts === 'number' ? Array.from(bytes, (_, index) => index * cuts) : cuts;
  const lifted = new Collected();
  const scanner = new AnswerScanner({
    operation,
    namespace: NAMESPACE,
    lifted,
    maxBytes: 10_000_000,
    secrets: new Secrets(),
  });
  let at = 0;
  for (const cut of [...places.filter((position) => position < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    // A copy, as from the network: nobody may rely on the bytes after the chunk.
    scanner.push(Buffer.from(bytes.subarray(at, cut)));
    at = cut;
  }
  const rest = scanner.finish();
  return { rest: rest.fault ?? rest.xml, texts: lifted.texts };
}

/** What `scan` returns, or the code of its error; any other error is thrown. */
export function tryScan(operation: Operation, document: Buffer | string, cuts?: Cuts): Scanned | string {
  try {
    return scan(operation, document, cuts);
  } catch (error) {
    if (error instanceof JobtailError) return error.code;
    throw error;
  }
}
