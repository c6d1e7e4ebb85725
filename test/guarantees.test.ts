/** The documents name the test behind each sentence of a promise, and behind each hostile input: it has to be there. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pageOf = (name: string) => fs.readFileSync(`${root}docs/${name}`, 'utf8');

/** What each row of the tables says, and by what it is shown. */
const rowsOf = (page: string): [string, string][] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (#|fault|input) \|/.test(line))
    .map((line) => line.split(' | '))
    .map((cells) => [cells[0]?.slice(2) ?? '', cells.at(-1) ?? '']);

const promises = pageOf('guarantees.md');
// Below the tables, tests are named where they show something of what is not promised.
const below = promises.slice(promises.indexOf('\n## When the raw bytes'));
const shown = [...rowsOf(promises), ...rowsOf(pageOf('hostile.md'))];

it.each([...shown, ['what is not promised', below]])('%s is shown by a test that exists', (_, shownBy) => {
  const named = shownBy.matchAll(/`(test\/[^`]+)`((?:,? "[^"]+")*)/g);
  let tests = 0;
  for (const [, file = '', names = ''] of named) {
    const text = fs.readFileSync(root + file, 'utf8');
    for (const [, name = ''] of names.matchAll(/"([^"]+)"/g)) {
      expect(
        [`'${name}`, `\`${name}`].some((start) => text.includes(start)),
        `${file}: ${name}`,
      ).toBe(true);
    }
    tests++;
  }
  expect(tests).toBeGreaterThan(0);
});
