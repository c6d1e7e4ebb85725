import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proveEncoding, TextEncoding } from '../../../src/agent/live/encoding.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { DecodingOptions } from '../../../src/sandbox/decoding.ts';
import { drive, textOf } from '../../support/drive.ts';
import { TEXT_ATOMS } from '../model/content.ts';

async function prove(bytes: Buffer, decoding: DecodingOptions, setting = 'auto') {
  const habits = new Map<string, string>();
  const encoding = new TextEncoding(setting, {
    get: (name) => habits.get(name),
    set: (name, to) => habits.set(name, to),
  });
  const asked: number[] = [];
  const reading = encoding.reading(textOf(bytes, 0, decoding));
  const proven = await drive(proveEncoding(0, reading, encoding), bytes, decoding, asked);
  return { proven, asked, learned: habits.get('text-encoding'), encoding };
}

const CZECH = 'Příliš žluťoučký kůň úpěl ďábelské ódy\n';

describe('how a service decodes', () => {
  test('is not asked while there is nothing but ASCII', async () => {
    expect(await prove(Buffer.from('plain text'), {})).toMatchObject({ asked: [], learned: undefined });
  });

  test('is found to be UTF-8 by one question at most', async () => {
    const text = fc.array(fc.constantFrom(...TEXT_ATOMS), { minLength: 1, maxLength: 700 });
    await fc.assert(
      fc.asyncProperty(text, async (atoms) => {
        const bytes = Buffer.concat([...atoms, Buffer.from('é')]);
        const { asked, learned, proven } = await prove(bytes, {});
        expect(proven).not.toBe('again');
        expect(asked.length).toBeLessThanOrEqual(1);
        expect(learned).toBe('utf-8');
      }),
    );
  });

  test('is found to be a code page, and which', async () => {
    const { learned, proven } = await prove(Buffer.from(CZECH), { codePage: 'windows-1250' });
    expect(learned).toBe('windows-1250');
    if (proven === 'again') throw new Error('it has to be proven');
    expect((await proven.peek(1_000)).toString()).toBe(CZECH);
    expect(await prove(Buffer.from('déjà vu'), { codePage: 'windows-1252' }, 'windows-1252')).toMatchObject({
      asked: [],
    });
  });

  test('is asked for where several code pages could be meant', async () => {
    // The euro sign is another byte in windows-1251 than in the others.
    const failed = prove(Buffer.from([0x31, 0x80]), { codePage: 'windows-1250' });
    await expect(failed).rejects.toThrow(JobtailError);
    await expect(failed).rejects.toMatchObject({ hint: expect.stringContaining('service.contentEncoding') });
  });

  test('is held against the configuration', async () => {
    const failed = prove(Buffer.from(CZECH), { codePage: 'windows-1250' }, 'utf-8');
    await expect(failed).rejects.toMatchObject({ hint: expect.stringContaining('windows-1250') });
  });

  test('is not learned from a file that changed meanwhile', async () => {
    const encoding = new TextEncoding('auto', new Map<string, string>());
    const before = Buffer.from(CZECH.repeat(3));
    const recipe = proveEncoding(0, encoding.reading(textOf(before, 0)), encoding);
    expect(await drive(recipe, Buffer.from('another file, and a longer one than before'.repeat(5)))).toBe('again');
    expect(encoding.proven).toBe(false);
  });
});
