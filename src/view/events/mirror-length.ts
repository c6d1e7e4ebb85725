/** How long a mirror is that a page shows, looked at whenever its stream asks. What came since is counted in lines. */
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import type { FileLength } from '../contract/events.ts';
import type { ViewParts } from '../parts.ts';
import { Refused } from '../refused.ts';

export class MirrorLength {
  readonly #parts: ViewParts;
  readonly #jobId: JobId;
  readonly #live: LiveFileKey;
  readonly #over = new AbortController();
  #version = '';
  #bytes = 0;

  constructor(parts: ViewParts, jobId: JobId, live: LiveFileKey) {
    this.#parts = parts;
    this.#jobId = jobId;
    this.#live = live;
  }

  /** Undefined while there is no mirror. */
  now(): FileLength | undefined {
    const file = `${this.#jobId}/${keyText(this.#live)}`;
    this.#check(file);
    if (this.#version === '') return undefined;
    const { counted } = this.#parts.indexes.of(`${file}/${this.#version}`);
    return { file, version: this.#version, bytes: this.#bytes, counted };
  }

  /** Ends the counting. */
  close(): void {
    this.#over.abort();
  }

  #check(file: string): void {
    const { contents, indexes } = this.#parts;
    try {
      const content = contents.open({ jobId: this.#jobId, live: this.#live, version: undefined });
      const { version, bytes } = content;
      if (version === this.#version && bytes === this.#bytes) {
        content.close();
        return;
      }
      this.#version = version;
      this.#bytes = bytes;
      indexes.count(`${file}/${version}`, content, this.#over.signal).catch(() => {});
    } catch (error) {
      // It does not exist yet, or the state cannot be read now: the stream reports that.
      if (!(error instanceof Refused)) this.#parts.snapshots.failed(error);
    }
  }
}
