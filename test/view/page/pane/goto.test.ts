import { describe, expect, it } from 'vitest';
import { destination } from '../../../../src/view/page/text/values.ts';

describe('where somebody wants to go', () => {
  it.each([
    ['1', { line: 0 }],
    ['12,345', { line: 12_344 }],
    [':7', { line: 6 }],
    ['@0', { byte: 0 }],
    ['@4096', { byte: 999 }],
    ['b12', { byte: 12 }],
    ['end', undefined],
    ['-1', undefined],
    ['', undefined],
  ])('%j', (typed, place) => {
    expect(destination(typed, 1_000)).toEqual(place);
  });
});
