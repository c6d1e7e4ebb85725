import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TextEncoding } from '../../../src/agent/live/encoding.ts';
import { proveEncoding } from '../../../src/agent/live/encoding-proof.ts';
import { JobtailError } from '../../../src/errors.ts';
import { charactersOf, type DecodeBytesOptions } from '../../../src/sandbox/decoding.ts';
import { drive, textOf } from '../../support/drive.ts';
import { numRuns } from '../../support/property-runs.ts';
import { TEXT_ATOMS } from '../model/content.ts';

interface How {
  readonly setting?: string;
  readonly habits?: Map<string, string>;
  readonly mayLackMark?: boolean;
  /** What the file is like at each of the questions; by default as it was. */
  readonly at?: (question: number) => Buffer;
}

async function prove(bytes: Buffer, decoding: DecodeBytesOptions, how: How = {}) {
  const { setting = 'auto', habits = new Map<string, string>(), mayLackMark = false, at = () => bytes } = how;
  const encoding = new TextEncoding(setting, habits);
  const asked: number[] = [];
  const reading = encoding.reading(textOf(bytes, 0, decoding));
  const proven = await drive(proveEncoding({ position: 0, mayLackMark }, reading, encoding), at, decoding, asked);
  return { proven, asked, learned: habits.get('text-encoding'), encoding };
}

const CZECH = 'Příliš žluťoučký kůň úpěl ďábelské ódy\n';
const text = fc
  .array(fc.constantFrom(...TEXT_ATOMS), { minLength: 1, maxLength: 40 })
  .map((atoms) => Buffer.concat(atoms));

describe('how a service decodes', () => {
  test('is not asked while there is nothing but ASCII', async () => {
    expect(await prove(Buffer.from('plain text'), {})).toMatchObject({ asked: [], learned: undefined });
  });

  test('is found to be UTF-8 by one question at most', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), async (start, swallowBom) => {
        const bytes = Buffer.concat([start, Buffer.from('é')]);
        const { asked, learned, proven } = await prove(bytes, { swallowBom });
        expect(proven).not.toBe('again');
        expect(asked.length).toBeLessThanOrEqual(1);
        expect(learned).toBe('utf-8');
      }),
    );
  });

  test('is found to be UTF-8 behind a byte-order mark that was swallowed, even if the text repeats itself', async () => {
    const repeated = fc
      .tuple(text, fc.integer({ min: 1, max: 200 }))
      .map(([each, times]) => Buffer.concat([Buffer.from('\ufeff'), ...Array<Buffer>(times).fill(each)]));
    const near = fc
      .constantFrom('é', '0é', '00é', '00é00é00é00é', '000é00é00é', '00é00')
      .map((each) => `\ufeff${each}`);
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          repeated,
          near.map((each) => Buffer.from(each.repeat(90))),
        ),
        async (bytes) => {
          const { learned } = await prove(bytes, { swallowBom: true }, { mayLackMark: true });
          expect(['utf-8', undefined]).toContain(learned);
        },
      ),
      numRuns(500),
    );
  });

  test('is never taken for a code page because the file was truncated or rewritten meanwhile', async () => {
    const change = fc.record({ call: fc.nat(3), to: fc.oneof(text, fc.constant(Buffer.alloc(0))), share: fc.nat(100) });
    await fc.assert(
      fc.asyncProperty(text, change, fc.boolean(), async (before, { call, to, share }, mayLackMark) => {
        const kept = before.subarray(0, Math.floor((share / 100) * before.length));
        const after = Buffer.concat([kept, to]);
        const how = { mayLackMark, at: (question: number) => (question < call ? before : after) };
        const { learned } = await prove(before, {}, how);
        expect(['utf-8', undefined]).toContain(learned);
      }),
      numRuns(1_000),
    );
  });

  test('is found to be a code page, and which', async () => {
    for (const mayLackMark of [false, true]) {
      const { learned, proven } = await prove(Buffer.from(CZECH), { codePage: 'windows-1250' }, { mayLackMark });
      expect(learned).toBe('windows-1250');
      if (proven === 'again') throw new Error('it has to be proven');
      expect((await proven.peek(1_000)).toString()).toBe(CZECH);
    }
  });

  test('is found to be a code page wherever its characters stand, and by few questions', async () => {
    const beyond = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(beyond, fc.nat(3), fc.boolean(), async (array, tail, mayLackMark) => {
        // Characters of windows-1252 that no other known code page has stand at the end.
        const bytes = Buffer.from([...array.filter((byte) => byte < 0x80 || byte >= 0xe0), 0xe0, 0xe3, 0xf5]);
        const whole = Buffer.concat([bytes, Buffer.alloc(tail, 'x')]);
        const { learned, asked } = await prove(whole, { codePage: 'windows-1252' }, { mayLackMark });
        expect(learned).toContain('windows-1252');
        expect(asked.length).toBeLessThanOrEqual(3);
      }),
    );
  });

  test('is found even if one character is all there is to tell', async () => {
    for (const bytes of [Buffer.from([0xe0]), Buffer.from([0x61, 0xe0]), Buffer.from([0x61, 0x61, 0xe0, 0x0a])])
      expect((await prove(bytes, { codePage: 'windows-1252' }, { mayLackMark: true })).learned).toContain('1252');
  });

  test('is told apart from others when a character comes that only one of them has', async () => {
    const habits = new Map<string, string>();
    const decoding = { codePage: 'windows-1252' } as const;
    expect((await prove(Buffer.from('Stra\xdfe\n', 'latin1'), decoding, { habits })).learned).toBe(
      'windows-1250 or windows-1252 or windows-1254',
    );
    const both = Buffer.from('Stra\xdfe \xe0 la carte\n', 'latin1');
    const reading = new TextEncoding('auto', habits).reading(textOf(both, 0, decoding));
    expect((await reading.peek(100)).toString('latin1')).toBe('Stra\xdfe ');
    expect((await prove(both.subarray(7), decoding, { habits })).learned).toBe('windows-1252 or windows-1254');
  });

  test('is asked for where several code pages could be meant', async () => {
    // The euro sign is another byte in windows-1251 than in the others.
    const failed = prove(Buffer.from([0x31, 0x80]), { codePage: 'windows-1250' });
    await expect(failed).rejects.toThrow(JobtailError);
    await expect(failed).rejects.toMatchObject({ hint: expect.stringContaining('service.contentEncoding') });
  });

  test.each([
    ['utf-8', 'windows-1250', CZECH],
    ['windows-1252', 'windows-1250', 'řeka\n'],
    ['windows-1250', undefined, 'déjà vu\n'],
    ['windows-1250', undefined, '日本語\n'],
  ] as const)('is held against the configuration: %s, though it is %s', async (setting, codePage, content) => {
    const failed = prove(Buffer.from(content), { codePage }, { setting });
    await expect(failed).rejects.toMatchObject({
      code: 'unexpected-answer',
      hint: expect.stringMatching(`service.contentEncoding to auto or to .*${codePage ?? 'utf-8'}`),
    });
  });

  test('is what the configuration says once that is proven', async () => {
    const habits = new Map<string, string>();
    const how = { setting: 'windows-1252', habits };
    expect((await prove(Buffer.from('déjà vu'), { codePage: 'windows-1252' }, how)).learned).toBe('windows-1252');
  });

  test('is proven anew after each start: what was learned may hold no longer', async () => {
    const habits = new Map([['text-encoding', 'windows-1250']]);
    const { learned, proven } = await prove(Buffer.from(CZECH), {}, { habits });
    expect(learned).toBe('utf-8');
    if (proven === 'again') throw new Error('it has to be proven');
    expect((await proven.peek(1_000)).toString()).toBe(CZECH);
  });

  test('is the rule for a text that was asked for before it was learned, too', async () => {
    const encoding = new TextEncoding('auto', new Map<string, string>());
    const decoding = { codePage: 'windows-1250' } as const;
    const bytes = Buffer.from(CZECH);
    const early = encoding.reading(textOf(bytes, 0, decoding));
    await drive(
      proveEncoding({ position: 0 }, encoding.reading(textOf(bytes, 0, decoding)), encoding),
      bytes,
      decoding,
    );
    const late = await drive(proveEncoding({ position: 0 }, early, encoding), bytes, decoding);
    if (late === 'again') throw new Error('it was proven');
    expect((await late.peek(1_000)).toString()).toBe(CZECH);
  });

  test('is proven from where a mirror ends inside a character', async () => {
    const bytes = Buffer.from('a€b\n');
    for (let position = 0; position <= bytes.length; position++) {
      const encoding = new TextEncoding('auto', new Map<string, string>());
      const reading = encoding.reading(textOf(bytes, 0));
      reading.advance(position);
      expect(await drive(proveEncoding({ position }, reading, encoding), bytes)).not.toBe('again');
    }
  });

  test('is not learned from a file that changed meanwhile', async () => {
    const encoding = new TextEncoding('auto', new Map<string, string>());
    const before = Buffer.from(CZECH.repeat(3));
    const recipe = proveEncoding({ position: 0 }, encoding.reading(textOf(before, 0)), encoding);
    expect(await drive(recipe, Buffer.from('another file, and a longer one than before'.repeat(5)))).toBe('again');
    expect(encoding.proven).toBe(false);
  });

  test('gives every byte of every known code page back', () => {
    for (const name of ['windows-1250', 'windows-1252'] as const) {
      const encoding = new TextEncoding(name, new Map<string, string>());
      expect(encoding.codePage?.encode(charactersOf(name).join(''))).toHaveLength(256);
    }
  });
});
