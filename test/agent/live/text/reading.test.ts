import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CodePage as CodePageName, charactersOf } from '../../../../simulator/operations/decoding.ts';
import { CodePage } from '../../../../src/agent/live/text/encoding.ts';
import { Reading } from '../../../../src/agent/live/text/reading.ts';
import { textOf } from '../../../support/drive.ts';
import { MemoryContent } from '../../../support/memory-content.ts';
import { ALL_ATOMS } from '../model/content.ts';

const bytes = fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 60 }).map((atoms) => Buffer.concat(atoms));

/** All certain bytes, with a U+FFFD where there are none, taken in steps of `step`. */
async function readAll(reading: Reading, step: number): Promise<string> {
  let text = '';
  while (!reading.atEnd()) {
    const certain = await reading.peek(step);
    expect(certain.length).toBeLessThanOrEqual(step);
    reading.advance(certain.length);
    text += certain.toString('latin1');
    if (certain.length === 0) text += '?'.repeat(await reading.skipUncertain());
  }
  return text;
}

describe('text of UTF-8', () => {
  test('gives all bytes of the text, but those of U+FFFD', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, fc.integer({ min: 1, max: 50 }), async (content, step) => {
        const text = Buffer.from(content.toString());
        const expected = text.toString('latin1').replaceAll('\xef\xbf\xbd', '?');
        expect(await readAll(new Reading(new MemoryContent(text)), step)).toBe(expected);
      }),
    );
  });

  test('is the same across the windows in which it is read', async () => {
    for (const [shift, window] of [0, 1, 2, 3, 4, 5].flatMap((each) => [[each, 16] as const, [each, 1024] as const])) {
      const text = Buffer.from(`${'x'.repeat(window * 1024 - 3 - shift)}\ufffdab\ufffd${'日'.repeat(400_000)}`);
      const expected = text.toString('latin1').replaceAll('\xef\xbf\xbd', '?');
      expect((await readAll(new Reading(new MemoryContent(text)), 1e9)) === expected).toBe(true);
    }
  });

  test('can be read twice from where it stands', async () => {
    const reading = new Reading(textOf(Buffer.from('one\xfftwo', 'latin1'), 0));
    reading.advance(3);
    const fork = reading.fork();
    expect(await readAll(reading, 10)).toBe('?two');
    expect(await readAll(fork, 10)).toBe('?two');
  });
});

describe('text of a code page', () => {
  test.each<CodePageName>(['windows-1250', 'windows-1252'])('%s gives back every byte', async (codePage) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.integer({ min: 1, max: 50 }), async (array, step) => {
        const content = Buffer.from(array);
        const reading = new Reading(textOf(content, 0, { codePage }), new CodePage([codePage]));
        expect(await readAll(reading, step)).toBe(content.toString('latin1'));
      }),
    );
  });

  test('is uncertain at a character that it does not have', async () => {
    const text = Buffer.from('a日b\ufffdc𝄞d');
    const reading = new Reading(new MemoryContent(text), new CodePage(['windows-1250']));
    expect(await readAll(reading, 10)).toBe('a?b?c?d');
  });

  test('is the same across the windows in which it is read', async () => {
    const content = Buffer.alloc(300_000, Buffer.from([0x61, 0xe9, 0x80, 0x20, 0xf8]));
    const reading = new Reading(textOf(content, 0, { codePage: 'windows-1250' }), new CodePage(['windows-1250']));
    expect((await readAll(reading, 1e9)) === content.toString('latin1')).toBe(true);
  });

  test('knows its 256 characters', () => {
    for (const name of ['windows-1250', 'windows-1252'] as const) {
      const all = charactersOf(name).join('');
      expect(new CodePage([name]).encode(all)).toEqual(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
    }
    for (const name of ['utf-16', 'gbk', 'no-such-thing']) expect(() => new CodePage([name])).toThrow(RangeError);
  });
});
