/** Live files that only the test writes: it knows all that was ever in them, and so what their mirrors may hold. */
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { readIfThere } from './e2e-place.ts';
import { until } from './e2e-until.ts';
import type { Attempt, Fleet } from './fleet.ts';

/** The bytes of a line go over the edges of characters. */
const TEXT = 'příliš žluťoučký kůň 敏捷的棕色狐狸 \u{1F680}';
/** A rewritten file that looks shorter is looked at for seconds. */
const LONGER_BYTES = 4_096;
/** `mirror.keepGenerations` by default. */
const KEPT = 5;

export class WrittenFile {
  readonly name: string;
  readonly mirror: string;
  readonly #real: string;
  /** By generation, each from its beginning on. */
  readonly #contents: Buffer[] = [Buffer.alloc(0)];
  /** By generation: so many bytes of it were seen in the mirror. */
  readonly #seen = new Map<number, number>();
  #lines = 0;

  constructor(name: string, real: string, mirror: string) {
    this.name = name;
    this.mirror = mirror;
    this.#real = real;
  }

  /** So many lines more, each unlike any other. */
  append(lines: number): void {
    const bytes = this.#nextLines(lines);
    fs.appendFileSync(this.#real, bytes);
    this.#contents.push(Buffer.concat([this.#contents.pop() ?? Buffer.alloc(0), bytes]));
  }

  /** Another content, longer than the one before. */
  rewrite(): void {
    const before = this.#current.length;
    this.#contents.push(Buffer.alloc(0));
    const pieces: Buffer[] = [];
    for (let length = 0; length < before + LONGER_BYTES; length += pieces.at(-1)?.length ?? 0)
      pieces.push(this.#nextLines(10));
    this.#contents[this.#contents.length - 1] = Buffer.concat(pieces);
    fs.writeFileSync(this.#real, this.#current);
  }

  get isEqual(): boolean {
    return readIfThere(this.mirror)?.equals(this.#current) ?? false;
  }

  /** What is wrong with the mirror and the generations kept beside it; undefined if nothing is. */
  wrong(): string | undefined {
    const mirror = readIfThere(this.mirror) ?? Buffer.alloc(0);
    const here = this.#generationOf(mirror);
    if (here === undefined) return `${this.name}: ${this.#difference(mirror)}`;
    if (mirror.length > 0) this.#seen.set(here, Math.max(mirror.length, this.#seen.get(here) ?? 0));
    const kept = this.kept().map(({ number, bytes }) => ({ number, generation: this.#generationOf(bytes), bytes }));
    // An empty mirror is the beginning of any generation: of the last one, at the latest.
    let younger = mirror.length === 0 ? this.#contents.length : here;
    for (const { number, generation, bytes } of kept) {
      if (generation === undefined) return `${this.name}.${number}: ${this.#difference(bytes)}`;
      if (bytes.length === 0) return `${this.name}.${number}: an empty generation was kept`;
      if (generation >= younger)
        return `${this.name}.${number}: made up, it is generation ${generation}, and the one after it ${younger}`;
      younger = generation;
    }
    return undefined;
  }

  /** What is wrong once everything is still: the mirror has to be the file, and what was seen before is kept. */
  wrongInTheEnd(): string | undefined {
    const wrong = this.wrong();
    if (wrong !== undefined) return wrong;
    if (!this.isEqual)
      return `${this.name}: ${readIfThere(this.mirror)?.length} of ${this.#current.length} bytes are here`;
    const kept = this.kept();
    const before = [...this.#seen].filter(([generation]) => generation < this.#contents.length - 1);
    for (const [generation, bytes] of before.sort(([a], [b]) => a - b).slice(-KEPT)) {
      const wanted = this.#contents[generation]?.subarray(0, bytes) ?? Buffer.alloc(0);
      if (!kept.some((old) => old.bytes.subarray(0, bytes).equals(wanted)))
        return `${this.name}: ${bytes} bytes of generation ${generation} are lost`;
    }
    return undefined;
  }

  /** The old generations, the youngest first. */
  kept(): { readonly number: number; readonly bytes: Buffer }[] {
    const directory = path.dirname(this.mirror);
    if (!fs.existsSync(directory)) return [];
    const prefix = `${path.basename(this.mirror)}.`;
    const numbers = fs
      .readdirSync(directory)
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length))
      .filter((rest) => /^[0-9]+$/.test(rest))
      .map(Number);
    return numbers
      .sort((a, b) => a - b)
      .flatMap((number) => {
        const bytes = readIfThere(`${this.mirror}.${number}`);
        return bytes === undefined ? [] : [{ number, bytes }];
      });
  }

  get #current(): Buffer {
    return this.#contents.at(-1) ?? Buffer.alloc(0);
  }

  #nextLines(count: number): Buffer {
    const generation = this.#contents.length - 1;
    // Another first character for each: however little of one is kept, it is known.
    const letter = String.fromCodePoint('A'.charCodeAt(0) + generation);
    const line = () => `${letter} ${this.name} generation ${generation} line ${this.#lines++} ${TEXT}\n`;
    return Buffer.from(Array.from({ length: count }, line).join(''));
  }

  /** The youngest one that begins so. */
  #generationOf(bytes: Buffer): number | undefined {
    const found = this.#contents.findLastIndex((content) => content.subarray(0, bytes.length).equals(bytes));
    return found < 0 ? undefined : found;
  }

  #difference(bytes: Buffer): string {
    const common = this.#contents.map((content) => commonLength(content, bytes));
    const at = Math.max(...common);
    const generation = common.indexOf(at);
    const around = (content: Buffer | undefined) =>
      JSON.stringify(content?.subarray(Math.max(0, at - 60), at + 60).toString('latin1'));
    return [
      `${bytes.length} bytes that never were in the file; up to ${at} they are generation ${generation} of ${this.#contents.length}`,
      `here:  ${around(bytes)}`,
      `there: ${around(this.#contents[generation])}`,
    ].join('\n');
  }
}

function commonLength(a: Buffer, b: Buffer): number {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a[at] === b[at]) at++;
  return at;
}

/** Two live files of each task: one that only grows, and one that may be rewritten. */
export function filesOf(job: JobDescription, mirrorOf: (taskId: string, file: string) => string): WrittenFile[] {
  return job.tasks.flatMap(({ taskId, files }) =>
    (['stdout', 'log'] as const).map(
      (file) => new WrittenFile(`${job.jobId}/${taskId}/${file}`, files[file], mirrorOf(taskId, file)),
    ),
  );
}

/** From a write to the line in the log, on a busy machine. */
const NOTICE_MS = 1_500;

/** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
export async function expectSound(fleet: Fleet, when: string): Promise<void> {
  for (const file of fleet.files) {
    // What is read while a mirror is cut may be bytes of before and after: what is wrong stays so.
    if (file.wrong() === undefined) continue;
    await until(`a mirror that is right, ${when}: ${file.wrong()}`, () => file.wrong() === undefined).catch(
      expect.fail,
    );
  }
  await expectOneOwner(fleet, when);
}

/** At the end: all of the above, every mirror is its file, and nothing is lost that was seen. */
export async function expectEqual(fleet: Fleet, files: readonly WrittenFile[] = fleet.files): Promise<void> {
  await fleet.untilEqual(files);
  expect(files.flatMap((file) => file.wrongInTheEnd() ?? [])).toEqual([]);
  await expectOneOwner(fleet, 'in the end');
}

async function expectOneOwner(fleet: Fleet, when: string): Promise<void> {
  const attempts = await fleet.attempts();
  expect(overlaps(attempts), when).toEqual([]);
  expect(
    fleet.agents.flatMap((agent) => lateGrowths(agent.name, agent.growths(), attempts)),
    when,
  ).toEqual([]);
}

/** Attempts of one job that do not follow one another. */
function overlaps(attempts: readonly Attempt[]): string[] {
  return attempts.flatMap((one, index) => {
    const next = attempts[index + 1];
    if (next === undefined || next.jobId !== one.jobId) return [];
    if (next.attempt > one.attempt && one.endedAt !== null && one.endedAt <= next.takenAt) return [];
    return [`job ${one.jobId}: ${JSON.stringify(one)} and ${JSON.stringify(next)}`];
  });
}

/** Mirrors that grew by an agent when it had no attempt of their job, as both sides tell it by clocks that agree. */
function lateGrowths(
  name: string,
  growths: readonly { readonly jobId: string; readonly at: number }[],
  attempts: readonly Attempt[],
): string[] {
  const mine = attempts.filter(({ agent }) => agent === name);
  return growths
    .filter(({ jobId, at }) => !mine.some((one) => one.jobId === jobId && isWithin(at, one)))
    .map(({ jobId, at }) => `${name}: a mirror of job ${jobId} grew at ${new Date(at).toISOString()}`);
}

const isWithin = (at: number, { takenAt, endedAt }: Attempt) =>
  at >= takenAt - NOTICE_MS && at <= (endedAt ?? Number.POSITIVE_INFINITY) + NOTICE_MS;
