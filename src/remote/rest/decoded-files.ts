/**
 * Clusters behind FirecREST send files as text, with U+FFFD in place of bytes that are not UTF-8 (docs/dev/rest.md 5.2). No
 * response shows this, but such a server also refuses parts of the job's live files.
 */
import type { Sink } from '../../agent/ports/server.ts';
import { REPLACEMENT } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { ONLY_DIRECTLY } from './calls.ts';

/** A FirecREST cluster silently cuts longer files to this length. */
const MAX_CHARACTERS = 5_242_880;

interface Watched {
  readonly sink: Sink;
  /** Called after the last byte. @throws JobtailError if the received bytes are perhaps not the file */
  requireBytes(): void;
}

export class DecodedFiles {
  readonly #withoutParts = new Set<JobId>();
  /** Jobs whose parts came once: their cluster sends parts, and a refusal is one of single files. */
  readonly #withParts = new Set<JobId>();

  learn(jobId: JobId, parts: 'came' | 'refused'): void {
    if (parts === 'came') {
      this.#withParts.add(jobId);
      this.#withoutParts.delete(jobId);
    } else if (!this.#withParts.has(jobId)) this.#withoutParts.add(jobId);
  }

  watch(jobId: JobId, sink: Sink): Watched {
    if (!this.#withoutParts.has(jobId)) {
      const requireBytes = () => {
        if (this.#withoutParts.has(jobId)) throw perhapsText('it came while the first parts were refused');
      };
      return { sink, requireBytes };
    }
    let end = Buffer.alloc(0);
    let isText = false;
    let length = 0;
    let characters = 0;
    return {
      sink: (bytes) => {
        length += bytes.length;
        // All bytes but those that continue a character of UTF-8.
        for (const byte of bytes) if ((byte & 0xc0) !== 0x80) characters++;
        const joined = Buffer.concat([end, bytes]);
        isText ||= joined.includes(REPLACEMENT);
        end = joined.subarray(1 - REPLACEMENT.length);
        return sink(bytes);
      },
      requireBytes: () => {
        if (length === MAX_CHARACTERS || characters === MAX_CHARACTERS)
          throw perhapsText(`it has exactly ${MAX_CHARACTERS.toLocaleString('en')} characters, and may be cut there`);
        if (isText) throw perhapsText('it contains U+FFFD');
      },
    };
  }
}

function perhapsText(what: string): JobtailError {
  return new JobtailError('unexpected-answer', `the response is perhaps text, and not the file: ${what}`, {
    hint: `the service refuses parts of this job, so the cluster may be one of FirecREST: ${ONLY_DIRECTLY}`,
  });
}
