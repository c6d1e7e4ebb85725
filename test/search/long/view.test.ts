import { expect, it } from 'vitest';
import { patternOf, searchForward } from '../../../src/view/content/search.ts';
import { sourceOf } from '../../support/view-models.ts';

it('a search of the view by an expression that would run away ends', async () => {
  const bytes = Buffer.from(`${'a'.repeat(5_000)}\n`.repeat(3));
  const runaway = patternOf({ text: '(a+)+$(?!\\s)b', matchCase: true, isExpression: true });
  await expect(searchForward(sourceOf(bytes), runaway, 0).next()).rejects.toThrow('takes too long');
});
