/**
 * The poll of a quiet job is the same question again and again, and mostly the same answer byte for byte. Such a request
 * is written once, and such an answer is known by its fingerprint, without being read as XML.
 */
import { hash } from 'node:crypto';
import type { Grant, KnownAnswer, PartRequest } from '../../agent/ports.ts';
import type { JobId } from '../../job.ts';

/** Longer answers have no fingerprint. */
const MAX_BYTES = 16 * 1024;

/** An answer that may be the one that is known. */
export class RepeatedAnswer {
  readonly #known: KnownAnswer;
  #fingerprint: string | undefined;

  constructor(known: KnownAnswer) {
    this.#known = known;
  }

  /** Of an answer that was read to its end and is short enough. */
  get fingerprint(): string | undefined {
    return this.#fingerprint;
  }

  get isKnown(): boolean {
    return this.#fingerprint !== undefined && this.#fingerprint === this.#known;
  }

  /** The chunks of `body`, or nothing of it if it is known. `onBytes` counts all that came. */
  async *unlessKnown(body: AsyncIterable<Buffer>, onBytes: (bytes: number) => void): AsyncGenerator<Buffer, void> {
    let held: Buffer[] | undefined = [];
    let length = 0;
    for await (const chunk of body) {
      onBytes(chunk.length);
      length += chunk.length;
      held?.push(chunk);
      if (held === undefined) yield chunk;
      else if (length > MAX_BYTES) {
        yield Buffer.concat(held, length);
        held = undefined;
      }
    }
    if (held === undefined) return;
    const whole = Buffer.concat(held, length);
    this.#fingerprint = hash('sha256', whole, 'base64');
    if (!this.isKnown) yield whole;
  }
}

/** A request as it was written, and what it asks. */
export interface WrittenRequest {
  readonly wanted: readonly PartRequest[];
  readonly grant: Grant;
  readonly xml: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Of each job, the request with which its last poll began. */
export class WrittenRequests {
  readonly #written = new Map<JobId, WrittenRequest>();

  /** What was written for the same question in the same session. */
  of(jobId: JobId, wanted: readonly PartRequest[], grant: Grant): WrittenRequest | undefined {
    const written = this.#written.get(jobId);
    return written?.grant === grant && asksTheSame(written.wanted, wanted) ? written : undefined;
  }

  keep(jobId: JobId, written: WrittenRequest): void {
    this.#written.set(jobId, written);
  }

  forget(jobId: JobId): void {
    this.#written.delete(jobId);
  }
}

function asksTheSame(left: readonly PartRequest[], right: readonly PartRequest[]): boolean {
  return (
    left.length === right.length &&
    left.every(({ taskId, file, offset }, index) => {
      const other = right[index];
      return other?.taskId === taskId && other.file === file && other.offset === offset;
    })
  );
}
