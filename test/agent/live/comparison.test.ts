/**
 * A mirror is compared from far before its end, as after the loss of the state, where characters are cut by the edges of
 * blocks and stand among undecodable bytes: no generation is made up, and what was changed is mended.
 */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyText } from '../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { numRuns } from '../../support/property-runs.ts';
import { removedDirectory } from '../../support/temp-directory.ts';
import { ALL_ATOMS, bytesOf, piece } from './model/content.ts';

interface Situation {
  /** The file as the service has it. */
  readonly bytes: Buffer;
  /** What was mirrored of it and committed; undefined if the state was lost. */
  readonly committed: Buffer | undefined;
  /** The mirror as it lies there. */
  readonly mirror: Buffer;
  readonly decoding: ModelRemote['decoding'];
}

/** How the mirror, and its number of generations, are after some polls. */
async function polled({ bytes, committed, mirror, decoding }: Situation) {
  return removedDirectory(async (directory) => {
    const remote = new ModelRemote();
    remote.decoding = decoding;
    let now = 1_000_000;
    const start = () => {
      const engine = new Engine({ directory, remote, now: () => now });
      engine.watch([STDOUT]);
      return engine;
    };
    const poll = async (engine: Engine) => {
      for (let polls = 0; polls < 6; polls++, now += 40_000) await engine.poll();
    };
    let engine = start();
    if (committed !== undefined) {
      remote.files.set(keyText(STDOUT), committed);
      await poll(engine);
      engine.kill();
      engine = start();
    }
    fs.mkdirSync(path.dirname(engine.mirror(STDOUT)), { recursive: true });
    fs.writeFileSync(engine.mirror(STDOUT), mirror);
    remote.files.set(keyText(STDOUT), bytes);
    await poll(engine);
    const [row] = engine.store.liveFiles.ofJob(JOB);
    const found = fs.readFileSync(engine.mirror(STDOUT));
    engine.kill();
    return { found, generation: row?.generation };
  });
}

/** The file goes on in text, so that nothing waits for the rest of a character. */
const withEnd = (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('the end')]);

/** Of one generation: its letter stands at the beginning, and every so many bytes. */
const content = fc
  .record({ what: piece, everyBytes: fc.constantFrom(20, 80, 3000) })
  .map(({ what, everyBytes }) => bytesOf(what, { letter: 'A', atoms: ALL_ATOMS, everyBytes }));

/** Up to about where the first block ends, and a few bytes of all kinds around that. */
const edged = fc
  .record({
    before: fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 3 }),
    unit: fc.constantFrom('0', 'é', '€', '\ufffd').map((text) => Buffer.from(text)),
    length: fc.integer({ min: 1_000, max: 1_026 }),
    behind: fc.array(fc.constantFrom(...ALL_ATOMS, Buffer.from('A')), { maxLength: 12 }),
  })
  .map(({ before, unit, length, behind }) =>
    Buffer.concat([Buffer.from('A'), ...before, Buffer.alloc(length - (length % unit.length), unit), ...behind]),
  );

const decoding = fc.constantFrom<ModelRemote['decoding'][]>(
  {},
  { swallowBom: true },
  { stream: true },
  { readLengths: [700] },
);
/** docs/guarantees.md names what is not promised of them. */
const hasMarksInARow = (bytes: Buffer) => bytes.includes('\ufeff\ufeff');

/** Mirrors that end within a character behind undecodable bytes, wherever: committed to their end, or to their first byte. */
const ENDS_WITHIN = ['41e282efbbefbbbf30', '41efbbefbbbfefbbefbbbf', '41c3e282ace282e282ac30'].flatMap((hex) => {
  const start = Buffer.from(hex, 'hex');
  return [{}, { swallowBom: true }].flatMap((how) =>
    Array.from({ length: start.length - 1 }, (_, left) => left).flatMap((left) =>
      [1, 1 / (start.length - left)].map((known): [Buffer, number, number, typeof how] => [start, left, known, how]),
    ),
  );
});

describe('a mirror that is the beginning of the file', () => {
  test.each([
    ['anywhere', content],
    ['about where the first block ends', edged],
  ])('goes on, and no generation is made up: one that ends %s', async (_, contents) => {
    const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(contents, fc.nat(40), share, decoding, async (start, left, known, how) => {
        fc.pre(!hasMarksInARow(start));
        const bytes = withEnd(start);
        const mirror = start.subarray(0, Math.max(1, start.length - left));
        const committed = known === undefined ? undefined : mirror.subarray(0, Math.round(known * mirror.length));
        const after = await polled({ bytes, committed, mirror, decoding: how });
        expect(after).toEqual({ found: bytes, generation: 1 });
      }),
      { ...numRuns(100 + ENDS_WITHIN.length), examples: ENDS_WITHIN },
    );
  });
});

/** One more undecodable byte among others. */
const AMONG_OTHERS: [Buffer, { at: number; removed: number; added: number[] }, object] = [
  Buffer.concat([Buffer.from('A'), Buffer.alloc(5, 0xff), Buffer.from('text, '.repeat(99))]),
  { at: 4, removed: 0, added: [0xff] },
  {},
];

describe('a mirror that another process changed', () => {
  test('is mended, wherever undecodable bytes were put in or taken out, and nothing is rewritten', async () => {
    const edit = fc.record({
      at: fc.nat(),
      removed: fc.nat(2),
      added: fc.array(fc.oneof(fc.constantFrom(0xff, 0x80, 0xc3, 0x41, 0), fc.nat(255)), { maxLength: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(content, edit, decoding, async (start, change, how) => {
        fc.pre(!hasMarksInARow(start));
        const bytes = withEnd(start);
        const at = change.at % (bytes.length + 1);
        const edited = [bytes.subarray(0, at), Buffer.from(change.added), bytes.subarray(at + change.removed)];
        const mirror = Buffer.concat(edited);
        const after = await polled({ bytes, committed: bytes, mirror, decoding: how });
        expect(after).toEqual({ found: bytes, generation: 1 });
      }),
      // In the first byte, no character begins any more.
      { ...numRuns(100), examples: [[Buffer.from('A0'), { at: 0, removed: 1, added: [255] }, {}], AMONG_OTHERS] },
    );
  });
});
