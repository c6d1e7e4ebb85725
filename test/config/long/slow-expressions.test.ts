/** Two seconds each: test/config/cases.txt and functions.txt have one of each kind. */
import { expect, it } from 'vitest';
import { isQuickExpression } from '../../../src/config/auth-schema.ts';

it.each(['(.*)*x', '(x+x+)+y', '(session|sess(ion)?)*x', '([a-z]+ ?)*ended', '(a|a)*b', '(ž|ž)*!'])(
  'an expression that a text made of its parts keeps busy is not quick: %s',
  (pattern) => expect(isQuickExpression(pattern)).toBe(false),
);
