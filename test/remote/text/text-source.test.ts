/** The bytes of live files over text: each certain byte is that of the file, whatever the file holds and becomes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BytesRequest, LiveBytes, WhatFollows } from '../../../src/agent/ports/live-source.ts';
import { characterStart } from '../../../src/bytes.ts';
import { keyText } from '../../../src/job.ts';
import { DECODING_CAPABILITY } from '../../../src/remote/text/decoding.ts';
import { textSources } from '../../../src/remote/text/text-source.ts';
import { ALL_ATOMS, TEXT_ATOMS } from '../../agent/live/model/content.ts';
import { JOB, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { numRuns } from '../../support/property-runs.ts';

const NAME = keyText(STDOUT);
const START: BytesRequest = { ...STDOUT, from: 0, known: 0, listedName: null, isThorough: false };
const DECODINGS: ModelRemote['decoding'][] = [
  {},
  { olderRuntime: true },
  { swallowBom: true },
  { stream: true },
  { readLengths: [700] },
];

const times = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 900 }));
const contentOf = (atoms: readonly Buffer[]) =>
  fc
    .array(fc.tuple(fc.constantFrom(...atoms), times), { maxLength: 6 })
    .map((runs) => Buffer.concat(runs.flatMap(([atom, count]) => Array<Buffer>(count).fill(atom))));
const decoding = fc.constantFrom(...DECODINGS);

function setUp(bytes: Buffer, how: ModelRemote['decoding'], learned: string | undefined = 'utf-8') {
  const remote = new ModelRemote();
  remote.decoding = how;
  remote.files.set(NAME, bytes);
  const known = new Map(learned === undefined ? [] : [[DECODING_CAPABILITY, learned]]);
  const capabilities = {
    get: (name: string) => known.get(name),
    set: (name: string, to: string) => known.set(name, to),
  };
  const batchLimit = { files: Number.POSITIVE_INFINITY };
  const source = textSources({ capabilities, direct: null, batchLimit, onChange: () => {} })(JOB);
  const calls = { remote, whole: remote, signal: new AbortController().signal };
  const ask = async <T>(request: BytesRequest, use: (answer: LiveBytes) => Promise<T>): Promise<T> => {
    const answer = (await source.bytes([request], calls, true)).files.get(NAME);
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('it does not exist');
    try {
      return await use(answer);
    } finally {
      await answer.release();
      expect(remote.held).toBe(0);
    }
  };
  return { remote, source, ask };
}

async function all(answer: LiveBytes, step = 100): Promise<{ bytes: Buffer; rest: WhatFollows }> {
  const pieces: Buffer[] = [];
  for (;;) {
    const piece = await answer.next(step);
    if (piece.length === 0) return { bytes: Buffer.concat(pieces), rest: await answer.whatFollows() };
    expect(piece.length).toBeLessThanOrEqual(step);
    pieces.push(Buffer.from(piece));
  }
}

/** The raw file, as it is received, and how the download of it ends. */
async function download({ raw }: LiveBytes) {
  const received: Buffer[] = [];
  const end = await raw.download(() => (bytes) => void received.push(Buffer.from(bytes)));
  return { end, received: Buffer.concat(received) };
}

/** Runs the property over files of such content, each with a decoder. */
const ofFiles = async <T>(
  [runs, atoms]: readonly [number, readonly Buffer[]],
  more: fc.Arbitrary<T>,
  check: (file: Buffer, how: ModelRemote['decoding'], more: T) => Promise<void>,
  examples: [Buffer, ModelRemote['decoding'], T][] = [],
) => fc.assert(fc.asyncProperty(contentOf(atoms), decoding, more, check), { ...numRuns(runs), examples });

describe('certain bytes', () => {
  test('are those of the file behind each mirror, to its end if nothing follows, and show the end of the mirror', async () => {
    const learned = fc.constantFrom('utf-8', 'utf-8', undefined, 'other');
    const cuts = fc.oneof(fc.constant(0), fc.nat());
    const more = fc.tuple(learned, fc.boolean(), cuts, fc.constantFrom(24, 256, 1020));
    await ofFiles([1_200, ALL_ATOMS], more, async (file, how, [known, isThorough, cut, overlap]) => {
      const { source, ask } = setUp(file, how, known);
      const length = cut % (file.length + 1);
      const start = Math.max(0, length - overlap);
      const from = start + source.overlapStart(file.subarray(start, length));
      const { bytes, rest } = await ask({ ...START, from, known: length - from, isThorough }, all);
      expect(bytes).toEqual(file.subarray(from, from + bytes.length));
      const isMark = from === 0 && ['efbbbf', 'fffe', 'feff'].includes(file.toString('hex'));
      if (rest === 'nothing' && !(isMark && !isThorough)) expect(from + bytes.length).toBe(file.length);
      if (rest === 'incomplete-character') expect(file.length - from - bytes.length).toBeGreaterThan(0);
      const hidden = file.subarray(from, length).toString();
      // It proves enough, or shows that it hides something, or there is none.
      const isEnough = 2 * (length - from) >= Math.min(overlap, length);
      expect(isEnough || from === length || /[\ufffd-\uffff\ufeff]/.test(hidden)).toBe(true);
      // With whole reads, no edge of a block lies in the overlap.
      const isShown = known === 'utf-8' && how.readLengths === undefined && isEnough;
      if (isShown && !hidden.includes('\ufffd')) expect(bytes.length).toBeGreaterThanOrEqual(length - from);
    });
  });

  test('are all bytes of a text, with two responses besides the one that shows its start', async () => {
    const check = async (text: Buffer, how: ModelRemote['decoding']) => {
      const file = Buffer.concat([Buffer.from('ab'), text]);
      const { ask, remote } = setUp(file, how);
      const { bytes, rest } = await ask(START, all);
      // A short read may cut the last character. The edge of a block does, if blocks are decoded one by one: nothing
      // after it shows that both go on alike.
      const last = characterStart(file, file.length - 1);
      const isAtEdge = Math.floor(last / 1_024) !== Math.floor((file.length - 1) / 1_024);
      const isCut = how.readLengths === undefined ? isAtEdge && how.stream !== true : rest === 'incomplete-character';
      const expected = isCut ? [file.subarray(0, last), 'incomplete-character'] : [file, 'nothing'];
      expect([bytes, rest]).toEqual(expected);
      expect(remote.calls).toBeLessThanOrEqual(3);
    };
    const edge = Buffer.from(`${'x'.repeat(1_021)}é`);
    await ofFiles(
      [300, TEXT_ATOMS],
      fc.constant(0),
      check,
      DECODINGS.map((how) => [edge, how, 0]),
    );
  });

  test('are of one content if the file is rewritten between the responses', async () => {
    const change = fc.record({ call: fc.nat(2), to: contentOf(ALL_ATOMS), share: fc.nat(100) });
    await ofFiles([1_000, ALL_ATOMS], change, async (rest, how, { call, to, share }) => {
      const before = Buffer.concat([Buffer.from('A'), rest]);
      const common = before.subarray(0, Math.floor((share / 100) * before.length));
      const after = Buffer.concat([common, Buffer.from('B'), to]);
      const { ask, remote } = setUp(before, how);
      let calls = 0;
      remote.beforeCall = () => void (calls++ === call && remote.files.set(NAME, after));
      const { bytes } = await ask(START, all);
      const isOf = (file: Buffer) => file.subarray(0, bytes.length).equals(bytes);
      expect(isOf(before) || isOf(after)).toBe(true);
    });
  });

  const zeros = '0'.repeat(1_021);
  const euro = Buffer.from('€');
  const euros = Buffer.concat(Array<Buffer>(200).fill(euro));
  const cut = Buffer.concat([Buffer.from('A'), euros, euro.subarray(0, 2)]);
  const whole = Buffer.concat([cut.subarray(0, 300), Buffer.from('B'), euros.subarray(1), euro]);
  test.each<[what: string, before: Buffer, after: Buffer, certain: number, WhatFollows]>([
    // At the edge of a block.
    [
      'with another text after it',
      Buffer.from(`AA${zeros}éA${zeros}`),
      Buffer.from(`BB${zeros}řB${zeros}`),
      1_023,
      'unclear',
    ],
    ['whole only with another content', cut, whole, cut.length - 2, 'incomplete-character'],
  ])('end before a character that the third response shows %s', async (_, before, after, certain, rest) => {
    const { ask, remote } = setUp(before, {});
    let calls = 0;
    remote.beforeCall = () => void (++calls === 3 && remote.files.set(NAME, after));
    expect(await ask(START, all)).toEqual({ bytes: before.subarray(0, certain), rest });
    expect(calls).toBe(3);
  });
});

// Which whole file it is, what is learned from it, and where the text of each kind of file ends: raw-text.txt.
test('the raw file of any content is proven by its text, and no byte comes before', async () => {
  await ofFiles([400, ALL_ATOMS], fc.nat(), async (file, how, cut) => {
    // A mark in the middle of a file is not requested, and some files of marks alone show nothing.
    const bytes = Buffer.concat([Buffer.from('A'), file]);
    const { source, ask } = setUp(bytes, how);
    const length = cut % (bytes.length + 1);
    const from = source.overlapStart(bytes.subarray(0, length));
    await ask({ ...START, from, known: length - from }, async (answer) => {
      const { end, received } = await download(answer);
      if (answer.size > 0 || from === bytes.length) expect(end.isThere).toBe(true);
      if (end.isThere) expect(received).toEqual(bytes);
    });
  });
});
