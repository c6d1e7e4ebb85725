/** Pages of the documents on a terminal: nothing is lost, and all but code fits. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { documentText } from '../../../src/cli/show/document.ts';
import { needsThat } from '../../support/needs.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const pages = ['docs', 'docs/dev'].flatMap((folder) =>
  fs
    .readdirSync(path.join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`),
);
const withoutCode = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
/** Words of letters, in their order; addresses of links are left out on a terminal, and headings are large. */
const wordsOf = (text: string) =>
  text
    .replaceAll(/\]\([^)]*\)/g, ']')
    .toLowerCase()
    .match(/\p{L}{3,}/gu) ?? [];

it.each([60, 80, 120])('a page has all its words in %d columns, and its prose and tables fit', (columns) => {
  for (const page of pages) {
    const markdown = withoutCode(fs.readFileSync(path.join(ROOT, page), 'utf8'));
    const shown = documentText(markdown, columns);
    const words = new Set(wordsOf(shown));
    // In a narrow terminal, the names of columns may go.
    const texts = markdown.replaceAll(/^\|.*\n(?=\|---)/gm, '');
    expect(
      wordsOf(texts).filter((word) => !words.has(word)),
      page,
    ).toEqual([]);
    // A word, such as an address, may be longer than the terminal is wide.
    const wide = shown.split('\n').filter((line) => line.length > columns && line.trim().split(/ +/).length > 3);
    expect(wide.length, `${page}: ${wide.join('\n')}`).toBeLessThan(5);
    expect(shown, page).not.toMatch(/\]\(|^\|.*\|$/m);
  }
});

it('code stays as it is, below a heading, a list and a table', () => {
  const markdown =
    '# A page\n\n- one\n  two `x`\n- **three** [four](five.md#six)\n\n```\n$ a  | b\n```\n\n| a | b |\n|---|---|\n| c \\| d | e |\n';
  expect(documentText(markdown, 80)).toBe(
    'A PAGE\n\n- one two x\n- three four\n\n    $ a  | b\n\na      b\nc | d  e\n',
  );
});

const hasScript = fs.existsSync('/usr/bin/script');

it('a page goes through $PAGER on a terminal', needsThat(hasScript, 'a terminal: it needs script'), () => {
  const shownWith = (PAGER: string) => {
    const env = { ...process.env, PAGER, TERM: 'xterm' };
    const args = ['-qec', `${ROOT}/bin/agent help json`, '/dev/null'];
    const { stdout, status } = spawnSync('script', args, { env, encoding: 'utf8' });
    return `${stdout}= ${status}`;
  };
  expect(shownWith('sed s/^/paged:/')).toContain('paged:');
  for (const none of ['', '/no/such/pager']) expect(shownWith(none)).toContain('OUTPUT FOR PROGRAMS');
  // Ctrl-C reaches both.
  expect(shownWith('cat > /dev/null; kill -INT $PPID; echo goes on')).toBe('goes on\r\n= 0');
});
