/**
 * Files of a few bytes, each of which could be anything, that grow, shrink and are rewritten within a character, between
 * two polls or between two questions of one, while raw bytes can be had or not. The histories of the model test come to
 * such ends rarely.
 */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { overlaps } from '../../../src/agent/live/mirror/inexact-regions.ts';
import { keyText } from '../../../src/job.ts';
import type { DecodeBytesOptions } from '../../support/decode-bytes.ts';
import { Engine, JOB, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { numRuns } from '../../support/property-runs.ts';
import { memoryDirectory } from '../../support/temp-directory.ts';
import { ALL_ATOMS } from './model/content.ts';

const NAME = keyText(STDOUT);
const DECODINGS: readonly [string, DecodeBytesOptions][] = [
  ['blocks', {}],
  ['blocks, marks swallowed', { swallowBom: true }],
  ['one decoder to the end', { stream: true }],
];
/** As promised (docs/guarantees.md). */
const POLLS = 10;
const BETWEEN_POLLS_MS = 15_000;
/** So long at most it takes until raw bytes that were refused are asked for again. */
const REFUSED_MS = 700_000;
const LETTERS = 'VWXYZ';

/** What a file becomes: so many bytes of what it was, then others; at once, or at a question of the next poll. */
interface Change {
  readonly kept: number;
  readonly added: readonly Buffer[];
  readonly cut: number;
  readonly question: number | null;
  readonly raw: boolean;
  readonly polls: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  kept: fc.oneof(fc.constant(1_000), fc.nat(12)),
  added: fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 4 }),
  cut: fc.nat(3),
  question: fc.option(fc.integer({ min: 1, max: 8 })),
  raw: fc.boolean(),
  polls: fc.integer({ min: 0, max: 3 }),
});

const at = (kept: number, added: string, rest: Partial<Omit<Change, 'kept' | 'added'>> = {}): Change => {
  return { kept, added: [Buffer.from(added, 'hex')], cut: 0, question: null, raw: false, polls: 0, ...rest };
};

/** What went wrong once. */
const FOUND: readonly (readonly Change[])[] = [
  // Rewritten while the width of undecodable bytes is measured.
  [at(1000, 'efbfbdefbbbf', { polls: 1 }), at(0, '', { question: 4 }), at(1000, '')],
  [
    at(0, 'feffef'),
    at(1000, '1b5b333b317eeda0', { polls: 3 }),
    at(9, '30c3a9eda080', { question: 4, cut: 3 }),
    at(0, ''),
  ],
  // Rewritten while it is asked how a mirror that ends within a character goes on.
  [
    at(0, '30e697a5efbfbd'),
    at(1000, 'e282ace697a5c3', { polls: 1 }),
    at(1000, 'efbbbf31cc81ef', { raw: true, polls: 1 }),
    at(12, 'f09d849ef09d849ee697a5ef', { question: 2 }),
  ],
  [at(1000, 'efbb', { polls: 1 }), at(3, 'efbbbf', { question: 4, raw: true }), at(0, '', { question: 2 })],
  // Raw bytes that mend `?` are followed by more than the mirror has.
  [at(0, 'efbfbd'), at(2, '30', { polls: 2 }), at(1000, '30')],
  // Other bytes in the place of `?`, of which the text does not say how many they are.
  [at(1000, 'eda080efbfbd', { polls: 2 }), at(2, '30'), at(1000, '')],
  // Rewritten in the middle of undecodable bytes, while raw bytes are refused.
  [at(0, 'b9eda080'), at(1000, '', { question: 1, raw: true, polls: 2 }), at(3, 'f09d849e30', { polls: 2 })],
];

test.each(DECODINGS)('%s: whatever a small file becomes, its mirror does', async (_, decoding) => {
  const cases = fc.asyncProperty(
    fc.array(change, { minLength: 1, maxLength: 4 }),
    async (changes: readonly Change[]) => {
      const world = new World(decoding);
      try {
        for (const each of changes) await world.become(each);
        await world.pollToEnd();
      } finally {
        world.end();
      }
    },
  );
  await fc.assert(cases, { ...numRuns(300), examples: FOUND.map((changes) => [[...changes]]) });
});

class World {
  readonly #directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-small-'));
  readonly #remote = new ModelRemote();
  readonly #engine: Engine;
  /** All that the file was; the mirror is the beginning of one of them. */
  readonly #was: Buffer[] = [];
  #now = 1_000_000;
  #isTruncated = false;

  constructor(decoding: DecodeBytesOptions) {
    this.#remote.decoding = decoding;
    this.#engine = new Engine({
      directory: this.#directory,
      remote: this.#remote,
      now: () => this.#now,
    });
    this.#engine.watch([STDOUT]);
  }

  async become({ question, raw, polls, ...content }: Change): Promise<void> {
    this.#remote.rawAccess = raw;
    if (question === null) this.#change(content);
    else {
      let left = question;
      this.#remote.beforeCall = () => {
        if (--left === 0) this.#change(content);
      };
      await this.#poll();
      this.#remote.beforeCall = () => {};
      if (left > 0) this.#change(content);
    }
    for (let poll = 0; poll < polls; poll++) await this.#poll();
  }

  /** The file holds still from now on, and its raw bytes can be had. */
  async pollToEnd(): Promise<void> {
    this.#remote.rawAccess = true;
    await this.#pollUntilEqual();
    this.#now += REFUSED_MS;
    await this.#pollUntilEqual();
    // What stands for undecodable bytes is mended in the last pass, which polls until the file is decided.
    let said: string | undefined;
    for (let polls = 0; polls < POLLS && (polls === 0 || !this.#isEqual()); polls++) said = await this.#poll(true);
    if (this.#isEqual()) return;
    expect({ mirror: this.#mirror().toString('hex'), said }).toEqual({ mirror: this.#last().toString('hex') });
  }

  end(): void {
    this.#engine.kill();
    fs.rmSync(this.#directory, { recursive: true });
  }

  #change({ kept, added, cut }: Pick<Change, 'kept' | 'added' | 'cut'>): void {
    const before = this.#last();
    // Two generations never agree over a whole overlap, but for one that is the beginning of the other (docs/guarantees.md).
    const begins = before.length === 0 || this.#isTruncated || kept < before.length;
    const letter = begins && added.length > 0 ? (LETTERS[this.#was.length] ?? '') : '';
    const bytes = Buffer.concat([before.subarray(0, kept), Buffer.from(letter), ...added]);
    const after = bytes.subarray(0, Math.max(Math.min(kept, before.length), bytes.length - cut));
    this.#isTruncated = after.length <= kept && (kept < before.length || this.#isTruncated);
    this.#was.push(after);
    this.#remote.files.set(NAME, after);
  }

  async #pollUntilEqual(): Promise<string | undefined> {
    let said: string | undefined;
    for (let polls = 0; polls < POLLS && !this.#isEqual(); polls++) said = await this.#poll();
    return said;
  }

  async #poll(final = false): Promise<string | undefined> {
    this.#now += BETWEEN_POLLS_MS;
    const { errors } = await this.#engine.poll(final);
    expect(this.#remote.held).toBe(0);
    const mirror = this.#mirror();
    const [row] = this.#engine.store.liveFiles.ofJob(JOB);
    const isOpen = (index: number) => row?.inexact.some((region) => overlaps(region, index, index + 1)) === true;
    const fits = (was: Buffer) => mirror.every((byte, index) => byte === was[index] || isOpen(index));
    if (mirror.length > 0 && !this.#was.some(fits))
      expect(mirror.toString('hex')).toBe('the beginning of what the file was');
    return errors.get(NAME)?.message;
  }

  #isEqual(): boolean {
    const [mirror, last] = [this.#mirror(), this.#last()];
    // A mark alone shows no text (docs/guarantees.md).
    if (['efbbbf', 'fffe', 'feff'].includes(last.toString('hex'))) return true;
    return mirror.equals(last) || this.#isShownAlike(mirror, last);
  }

  /** Whether only undecodable bytes became others; how many U+FFFD stand for so many, nobody knows (docs/guarantees.md). */
  #isShownAlike(mirror: Buffer, last: Buffer): boolean {
    const [ours, theirs] = [mirror, last].map((bytes) => this.#remote.show(bytes, 0));
    if (ours === undefined || theirs === undefined || !ours.includes('\ufffd')) return false;
    return ours.replace(/\ufffd+/g, '\ufffd') === theirs.replace(/\ufffd+/g, '\ufffd');
  }

  #last(): Buffer {
    return this.#was.at(-1) ?? Buffer.alloc(0);
  }

  #mirror(): Buffer {
    const file = this.#engine.mirror(STDOUT);
    return fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0);
  }
}
