import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
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

test('a text of which only ASCII counts is uncertain at each other character', async () => {
  const text = Buffer.from('a日b\ufffdcéd𝄞');
  expect(await readAll(new Reading(new MemoryContent(text), true), 10)).toBe('a?b?c?d?');
  expect(await new Reading(new MemoryContent(text)).isBeyondAscii()).toBe(true);
  expect(await new Reading(new MemoryContent(Buffer.from('abc'))).isBeyondAscii()).toBe(false);
});
