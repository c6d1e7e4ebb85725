/** Live files that only the test writes: it knows all that was ever in them, and so what their mirrors may hold. */
import fs from 'node:fs';
import { expect } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { readIfThere } from './e2e-place.ts';
import { until } from './e2e-until.ts';
import type { Fleet } from './fleet.ts';

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

  /** What is wrong once everything is still: the mirror has to be the file, and what was seen before is kept. */
  wrongInTheEnd(): string | undefined {
    const wrong = this.wrong();
    if (wrong !== undefined) return wrong;
    if (!this.isEqual)
      return `${this.name}: ${readIfThere(this.mirror)?.length} of ${this.#current.length} bytes are here`;
    const isKept = (seen: Buffer) => this.#kept().some((bytes) => bytes.subarray(0, seen.length).equals(seen));
    const lost = this.#contents
      .slice(0, -1)
      .findIndex((all, index) => !isKept(all.subarray(0, this.#seen[index] ?? 0)));
    return lost < 0 ? undefined : `${this.name}: ${this.#seen[lost]} bytes of generation ${lost} are lost`;
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

/** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
export async function expectSound(fleet: Fleet, when: string): Promise<void> {
  for (const file of fleet.files) {
    // What is read while a mirror is cut may be bytes of before and after: what is wrong stays so.
    if (file.wrong() === undefined) continue;
    await until(`a mirror that is right, ${when}: ${file.wrong()}`, () => file.wrong() === undefined).catch(
      expect.fail,
    );
  }
  const attempts = await fleet.attempts();
  const overlaps = attempts.filter((one, index) => {
    const next = attempts[index + 1];
    if (next === undefined || next.jobId !== one.jobId) return false;
    return next.attempt <= one.attempt || one.endedAt === null || one.endedAt > next.takenAt;
  });
  expect(overlaps, when).toEqual([]);
}

/** At the end: all of the above, every mirror is its file, and nothing is lost that was seen. */
export async function expectEqual(fleet: Fleet): Promise<void> {
  await fleet.untilEqual();
  expect(fleet.files.flatMap((file) => file.wrongInTheEnd() ?? [])).toEqual([]);
  await expectSound(fleet, 'in the end');
}
