/** The names of a listing, as far as they may take memory. */
import { expect, it } from 'vitest';
import { ListedNames } from '../../../src/remote/content/listed-names.ts';

it('a listing takes so much memory and no more, and a date of up to 64 characters is kept', () => {
  const listed = new ListedNames(2 * (32 + 5));
  const file = (name: string, date: string) =>
    new Map(Object.entries({ filename: name, lastmodifieddate: date })) as Parameters<ListedNames['add']>[0];
  listed.add(file('/a/b1', 'x'.repeat(64)));
  listed.add(file('/a/b2', 'x'.repeat(65)));
  expect(Object.entries(listed.listing)).toEqual([
    ['0', '/a/b1'],
    ['1', '/a/b2'],
    ['stamps', new Map([['/a/b1', 'x'.repeat(64)]])],
  ]);
  expect(() => listed.add('')).toThrow(
    expect.objectContaining({
      ...{ code: 'answer-too-large', message: 'the listing is larger than the 74 bytes allowed' },
      hint: expect.stringContaining('watch it with --no-results'),
    }),
  );
  const names = new ListedNames(74);
  names.add('/a/b1');
  expect(names.listing).toEqual(['/a/b1']);
});
