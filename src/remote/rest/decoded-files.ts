/**
 * Clusters behind FirecREST send files as text, with U+FFFD in place of bytes that are not UTF-8 (docs/dev/rest.md 5.2). No
 * response shows this, but such a server also refuses parts of the job's live files.
 */
import type { Sink } from '../../agent/ports.ts';
import { REPLACEMENT } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { ONLY_BY_SSH } from './refusals.ts';

/** A FirecREST cluster silently cuts longer files to this length. */
const MAX_CHARACTERS = 5_242_880;
const MAX_CHARACTER_BYTES = 4;

const HINT = `the service refuses parts of this job, so the cluster may be one of FirecREST: ${ONLY_BY_SSH}`;

interface Watched {
  readonly sink: Sink;
  /** Called after the last byte. @throws JobtailError if the received bytes are not the file */
  requireBytes(): void;
}

export class DecodedFiles {
  readonly #withoutParts = new Set<JobId>();

  learn(jobId: JobId, parts: 'came' | 'refused'): void {
    if (parts === 'refused') this.#withoutParts.add(jobId);
    else this.#withoutParts.delete(jobId);
  }

  watch(jobId: JobId, sink: Sink): Watched {
    let end = Buffer.alloc(0);
    let isText = false;
    let length = 0;
    let characters = 0;
    return {
      sink: (bytes) => {
        length += bytes.length;
        if (length <= MAX_CHARACTERS * MAX_CHARACTER_BYTES) characters += charactersIn(bytes);
        // A replacement character that is cut between two pieces.
        const edge = Buffer.concat([end, bytes.subarray(0, REPLACEMENT.length - 1)]);
        isText ||= edge.includes(REPLACEMENT) || bytes.includes(REPLACEMENT);
        end = Buffer.concat([end, bytes.subarray(-REPLACEMENT.length)]).subarray(1 - REPLACEMENT.length);
        return sink(bytes);
      },
      requireBytes: () => {
        if (!this.#withoutParts.has(jobId)) return;
        if (length === MAX_CHARACTERS || characters === MAX_CHARACTERS) {
          const what = `what came has exactly ${MAX_CHARACTERS.toLocaleString('en')} characters, and may be cut there`;
          throw new JobtailError('unexpected-answer', what, { hint: HINT });
        }
        if (isText)
          throw new JobtailError('unexpected-answer', 'what came is text with U+FFFD in it, and perhaps not the file', {
            hint: HINT,
          });
      },
    };
  }
}

/** Counts all bytes except continuation bytes of UTF-8. */
function charactersIn(bytes: Buffer): number {
  let characters = 0;
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) characters += 1;
  return characters;
}
