/** docs/guarantees.md names the test behind each sentence: that test has to be there. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = fs.readFileSync(`${root}docs/guarantees.md`, 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (#|fault) \|/.test(line))
  .map((line) => line.split(' | '));

// Below the tables, tests are named where they show something of what is not promised.
const below = page.slice(page.indexOf('\n## When the raw bytes'));

const shown: [string, string][] = rows.map((cells) => [cells[0]?.slice(2) ?? '', cells.at(-1) ?? '']);

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
