/** Which texts a pattern needs: without them, each line is tested by the expression, which takes many times as long. */
import { expect, it } from 'vitest';
import { textsIn } from '../../src/search/texts.ts';

it.each<[source: string, texts: readonly string[], isWhole?: boolean]>([
  ['needle', ['needle'], true],
  ['naïve', ['naïve'], true],
  ['a\\.b', ['a.b'], true],
  ['a needle|thread', ['a needle', 'thread']],
  ['needles?', ['needle']],
  ['needle{0,3}x', ['needl']],
  ['needle{1,3}x', ['needle']],
  ['needle{0}x', ['needl']],
  ['na[iï]ver', ['ver']],
  ['a\\.b\\d+ long', [' long']],
  ['\\u{41}bc|de', ['bc', 'de']],
  ['^start.*(end)?$', ['start']],
  ['(?:red|green) (ball)+ in', ['ball']],
  ['(?:red|green)* ball', [' ball']],
  ['(a|b*)long', ['long']],
  ['(?=far ahead)off', ['off']],
  ['(long)|x', ['long', 'x']],
  ['ab.|cd', ['ab', 'cd']],
  ['ab.cd', ['ab']],
  ['x*', []],
  ['', [], true],
  ['(one|)', []],
])('the pattern %s needs the texts %j', (source, texts, isWhole = false) => {
  expect(textsIn(source, false)).toEqual({ texts, isWhole });
});

it('a pattern needs no letters that are not of ASCII, where the case is ignored', () => {
  expect(textsIn('naïver', true)).toEqual({ texts: ['ver'], isWhole: false });
});
