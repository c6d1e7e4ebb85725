/**
 * Files of a few bytes, each of which could be anything, that grow, shrink and are rewritten within a character, while
 * raw bytes can be had or not. The histories of the model test come to such ends rarely.
 */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyText } from '../../../src/job.ts';
import type { DecodeBytesOptions } from '../../support/decode-bytes.ts';
import { Engine, STDOUT } from '../../support/engine.ts';
import { memoryWriter } from '../../support/memory-content.ts';
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
/** As promised (docs/guarantees.md); where raw bytes are refused each poll finds out about a part. */
const POLLS = 10;
const BETWEEN_POLLS_MS = 15_000;

/** What a file becomes: so many bytes of what it was, then others. */
const content = fc.record({
  kept: fc.oneof(fc.constant(1_000), fc.nat(12)),
  added: fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 4 }),
  cut: fc.nat(3),
  raw: fc.boolean(),
  polls: fc.integer({ min: 0, max: 3 }),
});

test.each(DECODINGS)('%s: whatever a small file becomes, its mirror does', async (_, decoding) => {
  const cases = fc.asyncProperty(
    fc.array(content, { minLength: 1, maxLength: 4 }),
    fc.constant(true),
    async (contents, raw) => {
      const world = new World(decoding);
      try {
        for (const each of contents) await world.become(each);
        await world.pollToEnd(raw);
      } finally {
        world.end();
      }
    },
  );
  await fc.assert(cases, numRuns(300));
});

class World {
  readonly #directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-small-'));
  readonly #remote = new ModelRemote();
  readonly #engine: Engine;
  readonly #was: Buffer[] = [];
  #now = 1_000_000;
  #isTruncated = false;

  constructor(decoding: DecodeBytesOptions) {
    this.#remote.decoding = decoding;
    this.#engine = new Engine({
      directory: this.#directory,
      remote: this.#remote,
      now: () => this.#now,
      newContent: () => memoryWriter(this.#remote),
    });
    this.#engine.watch([STDOUT]);
  }

  async become({
    kept,
    added,
    cut,
    raw,
    polls,
  }: {
    kept: number;
    added: readonly Buffer[];
    cut: number;
    raw: boolean;
    polls: number;
  }) {
    const before = this.#remote.files.get(NAME) ?? Buffer.alloc(0);
    // Two generations never agree over a whole overlap, but for one that is the beginning of the other (docs/guarantees.md).
    const begins = before.length === 0 || this.#isTruncated || kept < before.length;
    const letter = Buffer.from(begins && added.length > 0 ? ('VWXYZ'[this.#was.length] ?? '') : '');
    this.#isTruncated = kept < before.length && added.length === 0;
    const bytes = Buffer.concat([before.subarray(0, kept), letter, ...added]);
    const after = bytes.subarray(0, Math.max(Math.min(kept, before.length), bytes.length - cut));
    this.#was.push(after);
    this.#remote.files.set(NAME, after);
    this.#remote.rawAccess = raw;
    for (let poll = 0; poll < polls; poll++) await this.#poll();
  }

  async pollToEnd(raw: boolean): Promise<void> {
    this.#remote.rawAccess = raw;
    const remote = this.#was.at(-1) ?? Buffer.alloc(0);
    let said: string | undefined;
    for (let polls = 0; polls < POLLS && !this.#isDone(remote, raw); polls++) {
      const before = this.#mirror().length;
      said = await this.#poll();
      if (!raw && this.#mirror().length > before) polls = 0;
    }
    // Raw bytes that were refused are asked for again after a while.
    if (raw) this.#now += 700_000;
    for (let polls = 0; raw && polls < POLLS && !this.#isDone(remote, raw); polls++) said = await this.#poll();
    if (this.#isDone(remote, raw) || (!raw && said?.includes('does not go on'))) return;
    expect({ mirror: this.#mirror().toString('hex'), said }).toEqual({ mirror: remote.toString('hex') });
  }

  end(): void {
    this.#engine.kill();
    fs.rmSync(this.#directory, { recursive: true });
  }

  async #poll(): Promise<string | undefined> {
    this.#now += BETWEEN_POLLS_MS;
    const { errors } = await this.#engine.poll();
    expect(this.#remote.held).toBe(0);
    const mirror = this.#mirror();
    const fits = (was: Buffer) => mirror.every((byte, index) => byte === was[index] || byte === 0x3f);
    if (!this.#was.some(fits)) expect(mirror.toString('hex')).toBe('a prefix of what the file was');
    return errors.get(NAME)?.message;
  }

  #isDone(remote: Buffer, raw: boolean): boolean {
    const mirror = this.#mirror();
    // A mark alone shows no text (docs/guarantees.md).
    if (['efbbbf', 'fffe', 'feff'].includes(remote.toString('hex'))) return true;
    // A rewrite that leaves what is shown (docs/guarantees.md).
    const isPrefix = mirror.equals(remote.subarray(0, mirror.length));
    if (!isPrefix && this.#remote.show(mirror, 0) === this.#remote.show(remote, 0)) return true;
    return raw ? mirror.length === remote.length : mirror.length >= remote.length - 3 && mirror.length <= remote.length;
  }

  #mirror(): Buffer {
    const file = this.#engine.mirror(STDOUT);
    return fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0);
  }
}
