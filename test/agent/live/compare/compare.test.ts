/**
 * What `compare` says of a mirror, held against a reference that knows which byte of the file each character of an
 * answer came from.
 */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BLOCK_BYTES } from '../../../../simulator/operations/decoding.ts';
import { compare } from '../../../../src/agent/live/compare/compare.ts';
import { overlaps } from '../../../../src/agent/live/mirror/inexact-regions.ts';
import type { LiveFile } from '../../../../src/agent/live/mirror/live-file.ts';
import { askFrom } from '../../../../src/agent/live/offsets.ts';
import type { Answer } from '../../../../src/agent/live/steps.ts';
import { Utf8Reading } from '../../../../src/agent/live/text/reading.ts';
import type { Content } from '../../../../src/agent/ports.ts';
import { REPLACEMENT } from '../../../../src/bytes.ts';
import { keyText } from '../../../../src/job.ts';
import { decodeBytes } from '../../../support/decode-bytes.ts';
import { drive } from '../../../support/drive.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { LivePlace } from '../../../support/live-place.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { ALL_ATOMS, bytesOf, piece, TEXT_ATOMS } from '../model/content.ts';

/** Stretches of undecodable bytes that are asked about one by one. */
const MOST_ASKED = 16;
const RUNS = 400;

/** Bytes that the service decodes to one character: one that is whole, or as much as one U+FFFD stands for. */
interface Decoded {
  readonly start: number;
  readonly width: number;
  readonly isWhole: boolean;
}

/** The characters of an answer, in blocks counted from `offset`; a mark at the offset is perhaps swallowed. */
function* decodedFrom(bytes: Buffer, offset: number, swallowBom: boolean): Generator<Decoded> {
  const isMarked = swallowBom && bytes.toString('utf8', offset, offset + 3) === '\ufeff';
  for (let at = isMarked ? offset + 3 : offset; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + BLOCK_BYTES - ((at - offset) % BLOCK_BYTES));
    const textOf = (width: number) => bytes.toString('utf8', at, at + width);
    const width = [4, 3, 2].find((bytesIn) => at + bytesIn <= end && [...textOf(bytesIn)].length === 1) ?? 1;
    yield { start: at, width, isWhole: Buffer.byteLength(textOf(width)) === width };
    at += width;
  }
}

/** Which byte of the file an answer stands at; undefined if that is within what a U+FFFD stands for. */
function positionOf({ offset, reading }: Answer, bytes: Buffer, swallowBom: boolean): number | undefined {
  let at = Buffer.byteLength(decodeBytes(bytes, offset, { swallowBom })) - reading.remaining();
  for (const { start, width, isWhole } of decodedFrom(bytes, offset, swallowBom)) {
    if (at === 0 || (isWhole && at < width)) return start + at;
    at -= isWhole ? width : REPLACEMENT.length;
    if (at < 0) return undefined;
  }
  return at === 0 ? Math.max(offset, bytes.length) : undefined;
}

/** A poll up to the comparison. */
async function* pollOf(file: LiveFile, { final }: Situation): ReturnType<typeof compare> {
  const decode = (text: Content) => new Utf8Reading(text);
  const offset = await askFrom(file);
  const part = yield offset;
  if (part === undefined) return 'again';
  return yield* compare(file, { offset, reading: decode(part.content) }, { decode, final });
}

interface Situation {
  /** The file as the service has it. */
  readonly bytes: Buffer;
  readonly mirror: Buffer;
  /** Bytes of the mirror that were committed; undefined if the state was lost, so that nothing is known of them. */
  readonly committed: number | undefined;
  readonly swallowBom: boolean;
  readonly final: boolean;
}

async function comparing(place: LivePlace, situation: Situation) {
  const { bytes, mirror, committed, swallowBom } = situation;
  fs.rmSync(path.dirname(place.path), { recursive: true, force: true });
  place.commits.length = 0;
  place.kill();
  await place.during((file) => file.append(mirror.subarray(0, committed ?? 0)));
  fs.appendFileSync(place.path, mirror.subarray(committed ?? 0));
  if (committed === undefined) place.commits.length = 0;
  place.kill();
  const file = await place.open();
  const asked: number[] = [];
  try {
    const found = await drive(pollOf(file, situation), bytes, { swallowBom }, asked);
    return found === 'again' ? found : { ...found, from: asked[0] ?? 0 };
  } finally {
    await file.close();
  }
}

/** Of one generation: its letter stands at the beginning, and every so many bytes. */
const content = (letter: string) =>
  fc
    .record({ what: piece, everyBytes: fc.constantFrom(20, 80, 3000) })
    .map(({ what, everyBytes }) => bytesOf(what, { letter, atoms: ALL_ATOMS, everyBytes }));

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

const how = fc.record({ swallowBom: fc.boolean(), final: fc.boolean() });
/** docs/guarantees.md names what is not promised of them. */
const hasMarksInARow = (bytes: Buffer) => bytes.includes('\ufeff\ufeff');
const hasMarkBehindUndecodable = (bytes: Buffer) => bytes.toString().includes('\ufffd\ufeff');
/** Nothing is known of the mirror, or some of it was committed. */
const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
const shareOf = (part: number | undefined, length: number) =>
  part === undefined ? undefined : Math.round(part * length);

describe('a mirror that is the beginning of the file', () => {
  test('is told to be, and the answer stands exactly where it ends, or at the end of all that is shown', async () => {
    const place = new LivePlace();
    await fc.assert(
      fc.asyncProperty(content('A'), fc.nat(), share, how, async (bytes, end, known, { swallowBom, final }) => {
        fc.pre(!swallowBom || !hasMarksInARow(bytes));
        const mirror = bytes.subarray(0, end % (bytes.length + 1));
        const committed = shareOf(known, mirror.length);
        const found = await comparing(place, { bytes, mirror, committed, swallowBom, final });
        if (found === 'again' || found.kind !== 'same') throw new Error(JSON.stringify(found));
        // At the end of the text nothing is appended; the end of the file may show more by and by.
        if (!final && found.answer.reading.atEnd()) return;
        expect(positionOf(found.answer, bytes, swallowBom)).toBe(mirror.length);
      }),
      numRuns(RUNS),
    );
  });

  test('is never told to be another, wherever the first block ends and whatever is around that', async () => {
    const place = new LivePlace();
    await fc.assert(
      fc.asyncProperty(edged, fc.nat(40), share, how, async (bytes, left, known, { swallowBom, final }) => {
        fc.pre(!swallowBom || !hasMarksInARow(bytes));
        const mirror = bytes.subarray(0, bytes.length - left);
        const committed = shareOf(known, mirror.length);
        const found = await comparing(place, { bytes, mirror, committed, swallowBom, final });
        // A mirror that ends within a character may have to wait for raw bytes.
        if (found !== 'again') expect(found.kind).toBe('same');
      }),
      // Always the same ones: docs/guarantees.md names what is not promised of one in some ten thousand of them.
      { ...numRuns(RUNS), seed: 20_261_122 },
    );
  });
});

describe('a mirror that ends at a block edge of the answer', () => {
  const text = fc
    .array(fc.constantFrom(...TEXT_ATOMS.filter(({ length }) => length > 1)), { minLength: 900, maxLength: 1_200 })
    .map((atoms) => Buffer.concat(atoms));

  test('is compared to its last byte, though the edge cuts a character', async () => {
    const place = new LivePlace();
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: -3, max: 4 }), fc.boolean(), async (bytes, near, final) => {
        const mirror = bytes.subarray(0, BLOCK_BYTES + near);
        const found = await comparing(place, { bytes, mirror, committed: undefined, swallowBom: false, final });
        if (found === 'again' || found.kind !== 'same') throw new Error(JSON.stringify(found));
        expect(found.undetermined).toEqual([]);
        expect(positionOf(found.answer, bytes, false)).toBe(mirror.length);
      }),
      numRuns(RUNS / 4),
    );
  });
});

describe('a mirror that is not', () => {
  const edit = fc.record({
    at: fc.nat(),
    removed: fc.nat(2),
    added: fc.array(fc.oneof(fc.constantFrom(0xff, 0x80, 0xc3, 0x41, 0), fc.nat(255)), { maxLength: 2 }),
  });

  test('is never told to be, but for bytes that are named as undetermined', async () => {
    const place = new LivePlace();
    await fc.assert(
      fc.asyncProperty(content('A'), fc.nat(), edit, how, async (bytes, end, change, { swallowBom, final }) => {
        fc.pre(!(swallowBom && hasMarksInARow(bytes)) && !hasMarkBehindUndecodable(bytes));
        const before = bytes.subarray(0, end % (bytes.length + 1));
        const at = change.at % (before.length + 1);
        const mirror = Buffer.concat([
          before.subarray(0, at),
          Buffer.from(change.added),
          before.subarray(at + change.removed),
        ]);
        // Behind undecodable bytes, the beginning of a mark is taken for one that the service swallowed.
        fc.pre(!/(\xef|\xef\xbb)$/.test(mirror.toString('latin1')));
        const found = await comparing(place, { bytes, mirror, committed: undefined, swallowBom, final });
        if (found === 'again' || found.kind !== 'same') return;
        // Of many stretches some are asked about together: what cancels itself out among these is not seen.
        const cancels = change.added.length === before.length - at - before.subarray(at + change.removed).length;
        if (cancels && found.undetermined.length > MOST_ASKED) return;
        const isOpen = (index: number) => found.undetermined.some((region) => overlaps(region, index, index + 1));
        const isWrong = (byte: number, index: number) => byte !== bytes[index] && !isOpen(index);
        expect(mirror.findIndex((byte, index) => index >= found.from && isWrong(byte, index))).toBe(-1);
      }),
      numRuns(RUNS),
    );
  });

  test('because somebody put an undecodable byte among others is mended, and nothing is rewritten', async () => {
    const remote = new ModelRemote();
    const bytes = Buffer.concat([Buffer.from('A'), Buffer.alloc(5, 0xff), Buffer.from('text, '.repeat(99))]);
    remote.files.set(keyText(STDOUT), bytes);
    let now = 1_000_000;
    const engine = new Engine({ directory: temporaryDirectory(), remote, now: () => (now += 10_000) });
    onTestFinished(() => engine.kill());
    engine.watch([STDOUT]);
    const poll = async (times: number) => {
      for (let polls = 0; polls < times; polls++) await engine.poll();
      return fs.readFileSync(engine.mirror(STDOUT)).toString('latin1');
    };
    expect(await poll(3)).toBe(bytes.toString('latin1'));
    fs.writeFileSync(engine.mirror(STDOUT), Buffer.concat([bytes.subarray(0, 4), Buffer.of(0xff), bytes.subarray(4)]));
    expect(await poll(3)).toBe(bytes.toString('latin1'));
    expect(engine.store.liveFiles.ofJob(JOB)).toMatchObject([{ generation: 1, inexact: [] }]);
  });

  test.each([
    ['a whole character', 'cc81'],
    ['the beginning of one', 'e282'],
  ])('is told to be different although the file repeats itself, and it ends in %s', async (_, end) => {
    const place = new LivePlace();
    const unit = Buffer.concat([Buffer.from('B'), ...Array.from({ length: 28 }, () => REPLACEMENT)]);
    const bytes = Buffer.concat([Buffer.from('A1'), Buffer.of(0xcc), ...Array.from({ length: 9 }, () => unit)]);
    const mirror = Buffer.concat([Buffer.from('A1'), Buffer.from(end, 'hex')]);
    const situation = { bytes, mirror, committed: mirror.length, swallowBom: false, final: false };
    expect(await comparing(place, situation)).toMatchObject({ kind: 'different', at: 2 });
  });

  test('is told to be different from the byte on from which it is', async () => {
    const place = new LivePlace();
    await fc.assert(
      fc.asyncProperty(content('A'), content('B'), fc.nat(), share, how, async (bytes, other, end, known, rest) => {
        const common = bytes.subarray(0, end % (bytes.length + 1));
        const mirror = Buffer.concat([common, other]);
        const committed = shareOf(known, common.length);
        const found = await comparing(place, { bytes, mirror, committed, ...rest });
        expect(found).toMatchObject({ kind: expect.stringMatching(/^(different|shorter)$/) });
        if (found !== 'again' && found.kind !== 'same') expect(found.at).toBeLessThanOrEqual(common.length);
      }),
      numRuns(RUNS),
    );
  });
});
