import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { charactersOf, type CodePage as Name } from '../../../../simulator/operations/decoding.ts';
import { CodePage, TextEncoding } from '../../../../src/agent/live/text/encoding.ts';
import { numRuns } from '../../../support/property-runs.ts';

const NAMES: readonly Name[] = ['windows-1250', 'windows-1251', 'windows-1252', 'iso-8859-2', 'iso-8859-15'];
const shownBy = (name: Name, bytes: Buffer) => [...bytes].map((byte) => charactersOf(name)[byte]).join('');

describe('which code page a service decodes', () => {
  test('is never guessed: no byte is certain in which those that are left differ', () => {
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), fc.uint8Array({ minLength: 1, maxLength: 30 }), (name, array) => {
        const bytes = Buffer.from(array);
        const certain = new TextEncoding('auto', new Map())
          .codePagesOf(shownBy(name, bytes))
          .encode(shownBy(name, bytes));
        expect(bytes.subarray(0, certain.length)).toEqual(certain);
      }),
      numRuns(1_000),
    );
  });

  test('is reported by bytes that are known, for what they have in common with what comes', () => {
    const encoding = new TextEncoding('auto', new Map());
    const known = Buffer.from([0x61, 0xb9]);
    const names = encoding.codePagesShowing(known, shownBy('iso-8859-2', known));
    expect(names).toContain('iso-8859-2');
    expect(names).not.toContain('windows-1250');
    encoding.learn(names);
    expect(encoding.codePagesOf('š').encode('š')).toEqual(Buffer.from([0xb9]));
    expect(encoding.family).toBe('code-page');
  });

  test('is not reported by bytes of ASCII, nor by what was learned before a start', () => {
    const habits = new Map([['text-encoding', 'windows-1250']]);
    const encoding = new TextEncoding('auto', habits);
    expect(encoding.codePagesOf('š').encode('š')).toHaveLength(0);
    expect(encoding.family).toBeUndefined();
  });

  test('is reported by the configuration where nothing else does', () => {
    const encoding = new TextEncoding('iso-8859-2', new Map());
    expect(encoding.codePagesOf('š').encode('š')).toEqual(Buffer.from([0xb9]));
    expect(new TextEncoding('cp852', new Map()).codePagesOf('─').encode('─')).toEqual(Buffer.from([0xc4]));
  });

  test('is asked for where none of those known has a character', () => {
    expect(() => new TextEncoding('auto', new Map()).codePagesOf('─')).toThrow(
      expect.objectContaining({ code: 'unexpected-answer', hint: expect.stringContaining('service.contentEncoding') }),
    );
  });

  test.each([
    ['utf-8', () => new TextEncoding('utf-8', new Map()).codePagesOf('é')],
    ['windows-1252', () => new TextEncoding('windows-1252', new Map()).codePagesOf('ř')],
    ['windows-1250', () => new TextEncoding('windows-1250', new Map()).learn(['utf-8'])],
  ])('is held against the configuration: %s', (_, work) => {
    expect(work).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('service.contentEncoding to auto or') }),
    );
  });

  test('is kept, and says what is left', () => {
    const habits = new Map<string, string>();
    new TextEncoding('auto', habits).learn(['windows-1250', 'iso-8859-2']);
    expect(habits.get('text-encoding')).toBe('windows-1250 or iso-8859-2');
    new TextEncoding('auto', habits).learn(['utf-8']);
    expect(habits.get('text-encoding')).toBe('utf-8');
  });

  test.each(NAMES)('%s gives every byte back', (name) => {
    expect(new CodePage([name]).encode(charactersOf(name).join(''))).toHaveLength(256);
  });
});
