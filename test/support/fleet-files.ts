/** Live files that only the test writes: it knows all that was ever in them, and so what their mirrors may hold. */
import fs from 'node:fs';
import type { JobDescription } from '../../simulator/control.ts';
import { readIfThere } from './e2e-place.ts';

/** The bytes of a line go over the edges of characters. */
const TEXT = 'příliš žluťoučký kůň 敏捷的棕色狐狸 \u{1F680}';
/** A rewritten file that looks shorter is looked at for seconds. */
const LONGER_LINES = 40;

export class WrittenFile {
  readonly name: string;
  readonly mirror: string;
  readonly #real: string;
  /** By generation, each from its beginning on. */
  readonly #contents: Buffer[] = [Buffer.alloc(0)];
  /** By generation: so many bytes of it were seen in the mirror. */
  readonly #seen: number[] = [];
  #lines = 0;

  constructor(name: string, real: string, mirror: string) {
    this.name = name;
    this.mirror = mirror;
    this.#real = real;
  }

  /** So many lines more, each unlike any other. */
  append(lines: number): void {
    const generation = this.#contents.length - 1;
    // Another first character for each generation: however little of one is kept, it is known.
    const letter = String.fromCodePoint('A'.charCodeAt(0) + generation);
    const line = () => `${letter} ${this.name} generation ${generation} line ${this.#lines++} ${TEXT}\n`;
    const bytes = Buffer.from(Array.from({ length: lines }, line).join(''));
    fs.appendFileSync(this.#real, bytes);
    this.#contents[generation] = Buffer.concat([this.#current, bytes]);
  }

  /** Another content, longer than the one before. */
  rewrite(): void {
    const lines = this.#current.toString().split('\n').length + LONGER_LINES;
    this.#contents.push(Buffer.alloc(0));
    fs.truncateSync(this.#real);
    this.append(lines);
  }

  get isEqual(): boolean {
    return readIfThere(this.mirror)?.equals(this.#current) ?? false;
  }

  /** What is wrong with the mirror and the old generations beside it, each of them older than the one before it. */
  wrong(): string | undefined {
    const mirror = readIfThere(this.mirror) ?? Buffer.alloc(0);
    let younger = this.#contents.length;
    for (const bytes of [mirror, ...this.#kept()]) {
      const isIt = (content: Buffer, generation: number) =>
        generation < younger && content.subarray(0, bytes.length).equals(bytes);
      younger = this.#contents.findLastIndex(isIt);
      if (younger < 0) return `${this.name}: ${bytes.length} bytes that are the beginning of no older generation`;
      if (bytes === mirror) this.#seen[younger] = Math.max(mirror.length, this.#seen[younger] ?? 0);
    }
    return undefined;
  }

  /** The generations of which more was seen in the mirror than is kept. */
  lost(): string[] {
    const isKept = (seen: Buffer) => this.#kept().some((bytes) => bytes.subarray(0, seen.length).equals(seen));
    return this.#contents.slice(0, -1).flatMap((all, generation) => {
      const seen = all.subarray(0, this.#seen[generation] ?? 0);
      return isKept(seen) ? [] : [`${this.name}: ${seen.length} bytes of generation ${generation} are lost`];
    });
  }

  /** The old generations, the youngest first. */
  #kept(): Buffer[] {
    const found = [1, 2, 3, 4, 5].map((number) => readIfThere(`${this.mirror}.${number}`));
    return found.filter((bytes) => bytes !== undefined);
  }

  get #current(): Buffer {
    return this.#contents.at(-1) ?? Buffer.alloc(0);
  }
}

/** Two live files of each task: one that only grows, and one that may be rewritten. */
export function filesOf(job: JobDescription, mirrorOf: (taskId: string, file: string) => string): WrittenFile[] {
  return job.tasks.flatMap(({ taskId, files }) =>
    (['stdout', 'log'] as const).map(
      (file) => new WrittenFile(`${job.jobId}/${taskId}/${file}`, files[file], mirrorOf(taskId, file)),
    ),
  );
}
