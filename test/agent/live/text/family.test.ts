import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CodePage } from '../../../../simulator/operations/decoding.ts';
import { identifyFamily } from '../../../../src/agent/live/text/explain.ts';
import { Utf8Reading } from '../../../../src/agent/live/text/reading.ts';
import { type DecodeBytesOptions, decodeBytes } from '../../../support/decode-bytes.ts';
import { drive, textOf } from '../../../support/drive.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { TEXT_ATOMS } from '../model/content.ts';

async function tell(bytes: Buffer, decoding: DecodeBytesOptions, at: (question: number) => Buffer = () => bytes) {
  const asked: number[] = [];
  const family = await drive(identifyFamily(0, new Utf8Reading(textOf(bytes, 0, decoding))), at, decoding, asked);
  return { family, asked };
}

const text = fc
  .array(fc.constantFrom(...TEXT_ATOMS), { minLength: 1, maxLength: 40 })
  .map((atoms) => Buffer.concat(atoms));

describe('whether a service decodes UTF-8 or a code page', () => {
  test('is not asked while there is nothing but ASCII', async () => {
    expect(await tell(Buffer.from('plain text'), {})).toEqual({ asked: [], family: 'ascii' });
  });

  test('is found to be UTF-8 by one question at most', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), async (start, stream) => {
        const { asked, family } = await tell(Buffer.concat([Buffer.from('0'), start, Buffer.from('é')]), { stream });
        expect(family).toBe('utf-8');
        expect(asked.length).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('is never taken for a code page because the file was truncated or rewritten meanwhile', async () => {
    const change = fc.record({ call: fc.nat(3), to: fc.oneof(text, fc.constant(Buffer.alloc(0))), share: fc.nat(100) });
    await fc.assert(
      fc.asyncProperty(text, change, async (before, { call, to, share }) => {
        const kept = before.subarray(0, Math.floor((share / 100) * before.length));
        const after = Buffer.concat([kept, to]);
        const reported = tell(before, {}, (question) => (question < call ? before : after));
        // Or it is known that it is neither, which is said.
        const family = await reported.then((found) => found.family).catch((error: { code: string }) => error.code);
        expect(['utf-8', 'ascii', 'again', 'unexpected-answer']).toContain(family);
      }),
      numRuns(1_000),
    );
  });

  test('is found to be a code page wherever its characters stand, and by few questions', async () => {
    const bytes = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 60 });
    const page = fc.constantFrom<CodePage[]>('windows-1250', 'windows-1252', 'iso-8859-2', 'iso-8859-15');
    await fc.assert(
      fc.asyncProperty(bytes, page, async (array, codePage) => {
        fc.pre(array.some((byte) => byte >= 0x80));
        const { family, asked } = await tell(Buffer.from(array), { codePage });
        expect(family).toBe('code-page');
        expect(asked.length).toBeLessThanOrEqual(2);
      }),
      numRuns(500),
    );
  });

  test('is reported from where a mirror ends inside a character', async () => {
    const bytes = Buffer.from('a€b\n');
    for (let position = 0; position <= bytes.length; position++) {
      const reading = new Utf8Reading(textOf(bytes, 0));
      reading.advance(position);
      expect(await drive(identifyFamily(position, reading), bytes)).toBe(position < 2 ? 'utf-8' : 'ascii');
    }
  });

  test('is said to be unknown if what it shows from within a character is of neither', async () => {
    // Every character is two bytes of the file.
    const utf16 = Buffer.from('ab ř cd', 'utf16le');
    const recipe = identifyFamily(0, new Utf8Reading(textOf(Buffer.from('ab ř cd'), 0)));
    let step = await recipe.next();
    const show = async () => {
      const text = decodeBytes(utf16.subarray((step.value as number) & ~1), 0, {});
      return { length: text.length, read: async () => Buffer.from(text), release: async () => {} };
    };
    while (!step.done) {
      const offset = step.value as number;
      const content = offset % 2 === 1 ? textOf(Buffer.from('ab ř cd'), 3) : await show();
      step = await recipe.next({ taskId: '1' as never, file: 'stdout', offset, relativePath: null, content });
    }
    expect(step.value).toBe('again');
  });
});
