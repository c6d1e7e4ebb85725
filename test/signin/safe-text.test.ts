import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { safeText } from '../../src/signin/safe-text.ts';
import { numRuns } from '../support/property-runs.ts';

const wrappings: ((secret: string) => string)[] = [
  (secret) => secret,
  (secret) => JSON.stringify(secret),
  (secret) => encodeURIComponent(secret),
  (secret) => Buffer.from(secret).toString('base64'),
  (secret) => secret.toUpperCase(),
];

describe('safeText', () => {
  it('shows eight characters in a row of no secret, however it is written', () => {
    const part = fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 4 }));
    const property = fc.property(
      fc.string({ minLength: 12, maxLength: 60 }),
      fc.string(),
      fc.nat({ max: wrappings.length - 1 }),
      part,
      (secret, around, how, [from, to]) => {
        const wrapped = wrappings[how]?.(secret.slice(from, secret.length - to)) ?? '';
        const shown = safeText(`${around} ${wrapped} ${around}`, [secret]);
        for (let at = 0; at + 8 <= secret.length; at++) {
          const piece = secret.slice(at, at + 8);
          // What stands there in any case tells nothing; the hidden parts are three stars.
          if (!piece.includes('***')) expect(shown.toLowerCase()).not.toContain(piece.toLowerCase());
        }
      },
    );
    fc.assert(property, numRuns(2000));
  });

  it('is one short line of visible characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
        const shown = safeText(text, []);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect([...shown].length).toBeLessThanOrEqual(203);
      }),
    );
  });

  it('leaves harmless text as it is', () => {
    expect(safeText('Wrong user name or password', ['hunter2'])).toBe('Wrong user name or password');
    expect(safeText('a short secret: ab', ['ab'])).toBe('a short secret: ***');
    expect(safeText('nothing', [''])).toBe('nothing');
  });
});
