import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, printableJson, printableLines } from '../src/printable.ts';
import { anyCharacter } from './support/property-runs.ts';

/** Controls of both kinds, line and paragraph separators, and what turns or hides the text around it. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u;
const anything = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\n', '\u001B', '\u009b', '\u202e', '\u{E0041}', '\u007f'),
    fc.string({ unit: anyCharacter, maxLength: 1 }),
  ),
});

describe('text from outside', () => {
  it('has nothing left that acts, whatever it was', () => {
    fc.assert(
      fc.property(anything, (text) => {
        expect(printable(text)).not.toMatch(UNSEEN);
        expect(printableLines(text).replaceAll('\n', '')).not.toMatch(UNSEEN);
        expect(printableLines(text).split('\n').length).toBe(text.split('\n').length);
      }),
    );
  });

  it('is the same text in JSON for each reader', () => {
    fc.assert(
      fc.property(fc.dictionary(anything, fc.array(anything)), fc.constantFrom(undefined, 2), (value, indent) => {
        const json = printableJson(value, indent);
        expect(json.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
