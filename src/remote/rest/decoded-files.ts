/**
 * Files of a cluster that is reached by FirecREST come as text: bytes that are none of UTF-8 are U+FFFD by then, and
 * what arrives is not the file (docs/rest.md 5.2). No response shows it; but parts of the job's live files are refused
 * there, too.
 */
import type { Sink } from '../../agent/ports.ts';
import { REPLACEMENT } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { ONLY_BY_SSH } from './refusals.ts';

/** What a FirecREST cluster hands out of a longer file, without a word about the rest. */
const MAX_CHARACTERS = 5_242_880;
/** Of a character in UTF-8. */
const MAX_CHARACTER_BYTES = 4;

const HINT = `the service refuses parts of this job, so the cluster may be one of FirecREST: ${ONLY_BY_SSH}`;

interface Watched {
  readonly sink: Sink;
  /** To be called when all came. @throws JobtailError if what came is not the file */
  requireBytes(): void;
}

export class DecodedFiles {
  readonly #withoutParts = new Set<JobId>();

  /** What became of a call for parts. */
  learn(jobId: JobId, parts: 'came' | 'refused'): void {
    if (parts === 'refused') this.#withoutParts.add(jobId);
    else this.#withoutParts.delete(jobId);
  }

  /** Looks at a file on its way to `sink`. */
  watch(jobId: JobId, sink: Sink): Watched {
    let end = Buffer.alloc(0);
    let isText = false;
    let length = 0;
    let characters = 0;
    return {
      sink: (bytes) => {
        length += bytes.length;
        if (length <= MAX_CHARACTERS * MAX_CHARACTER_BYTES) characters += charactersIn(bytes);
        // A character that two pieces share is in neither.
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

/** All bytes but those that go on with a character of UTF-8. */
function charactersIn(bytes: Buffer): number {
  let characters = 0;
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) characters += 1;
  return characters;
}
