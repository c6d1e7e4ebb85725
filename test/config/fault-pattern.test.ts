import { describe, expect, it } from 'vitest';
import { isQuickExpression, matchesInTime } from '../../src/config/auth-schema.ts';

const LONG = 'a session of words '.repeat(108);

describe('a pattern for lost sessions', () => {
  it('is tried without regard to the case', () => {
    expect(matchesInTime('session (is )?closed', 'The SESSION is closed.')).toBe(true);
    expect(matchesInTime('^session', 'The session is closed.')).toBe(false);
  });

  it.each([
    'session (is )?closed',
    'sezení.*vypršelo',
    '(?:a|b)+c',
    '^[a-z ]*gone$',
    '\\bexpired\\b|\\bunknown\\b',
    '[^:]+: no',
  ])('is taken if it is quick: %s', (pattern) => {
    expect(isQuickExpression(pattern)).toBe(true);
    expect(matchesInTime(pattern, LONG)).toBe(false);
  });

  it('is refused if a text keeps it busy', () => {
    expect(isQuickExpression('.*.*.*.*!')).toBe(false);
  });

  it('ends soon in any case', () => {
    // The text was made for the pattern.
    expect(matchesInTime('(a+)+$', `${'a'.repeat(2000)}!`)).toBeUndefined();
    expect(matchesInTime('session', 'session')).toBe(true);
  });

  it('is none if it cannot be read', () => {
    expect(isQuickExpression('(')).toBe(false);
    expect(isQuickExpression('')).toBe(true);
  });
});
