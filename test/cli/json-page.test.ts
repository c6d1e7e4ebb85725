/** docs/json.md names every command with `--json`, and the exit codes of help and manual page. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { EXIT_CODES } from '../../src/cli/help.ts';
import { programOf } from '../../src/cli/program.ts';

const page = fs.readFileSync(fileURLToPath(new URL('../../docs/json.md', import.meta.url)), 'utf8');
const [forms = '', codes = ''] = page.split('\n## Exit codes\n');

it('the page has a row or a section for each command with --json, and for no other', () => {
  const named = [...forms.matchAll(/^(?:## agent ([a-z]+) --json|\| `([a-z]+)(?: --list)?` \| (?!meaning))/gm)];
  const commands = programOf().commands.filter(({ options }) => options.some(({ long }) => long === '--json'));
  const names = new Set(commands.map((command) => command.name()));
  const onPage = named.map(([, section, row]) => section ?? row ?? '');
  expect([...names].filter((name) => !onPage.includes(name))).toEqual([]);
  const tableOfCommands = forms.slice(forms.indexOf('| command | keys |'));
  const rows = [...tableOfCommands.matchAll(/^\| `([a-z]+)/gm)].map(([, name = '']) => name);
  expect(rows.filter((name) => !names.has(name))).toEqual([]);
});

it('the page lists the exit codes of the help, and no other', () => {
  const onPage = [...codes.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(onPage.sort((a, b) => a - b)).toEqual(EXIT_CODES.map(([code]) => code).sort((a, b) => a - b));
});
