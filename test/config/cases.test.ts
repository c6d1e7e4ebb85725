/**
 * What is read of each case of cases.txt, or why it is refused: the whole messages. A case is a line that begins with
 * `>`; `--update=true` writes the others. SECTION | LINE is a line in a section of a configuration for SOAP, or after
 * `rest`, for REST; anything else is a whole file, whose lines end at `⏎`. What is read is shown where it differs from
 * that configuration: `soap` is all of one, `rest` what differs. A hint is shown where it is another one than before.
 */
import path from 'node:path';
import { expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import type { JobtailError } from '../../src/errors.ts';
import { expectCases } from '../support/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path: at, load } = configDirectory();
const CASES = path.join(import.meta.dirname, 'cases.txt');
/** Parts of inputs, which no message may show. */
const SECRETS = /hunter2|271828|SECRETx8|T0001|12345678/;

const BASES = {
  soap: MINIMAL,
  rest: 'service:\n  protocol: rest\n  baseUrl: https://m.example.org/\nauth:\n  username: alice\n  passwordFile: password\n',
};

/** A configuration with one line put into a section, instead of the line of the same key if there is one. */
function withLine(base: string, section: string, line: string): string {
  const key = line.slice(0, line.indexOf(':') + 1);
  const lines = base.split('\n').filter((other) => key === '' || !other.trimStart().startsWith(key));
  const start = lines.indexOf(`${section}:`);
  if (start < 0) return `${base}${section}:\n  ${line}\n`;
  return lines.toSpliced(start + 1, 0, `  ${line}`).join('\n');
}

/** The base of a case, and its file. */
function fileOf(text: string): [keyof typeof BASES, string] {
  const [, rest, section, line] = /^(rest )?([a-zA-Z]+) \| (.*)$/.exec(text) ?? [];
  const base = rest === undefined ? 'soap' : 'rest';
  if (text === 'soap' || text === 'rest') return ['soap', BASES[text]];
  return section === undefined ? ['soap', text] : [base, withLine(BASES[base], section, line ?? '')];
}

const shown = (text: string) => text.replaceAll(at(''), 'DIR').replaceAll(/DIR\/\d+\.yaml: ?/g, '');

/** One line for each value. */
function linesOf(value: unknown, name = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${name} = ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([key, inner]) => linesOf(inner, name === '' ? key : `${name}.${key}`));
}

const configLines = ({ file: _, ...config }: Config) => linesOf(config).map(shown);

it('each case is read, or refused, as is written there', async () => {
  const usual = {
    soap: configLines(await load(BASES.soap)),
    rest: configLines(await load(BASES.rest)),
  };
  let hint = '';
  await expectCases(CASES, async (written) => {
    const [base, text] = fileOf(written);
    const result = await load(text.replaceAll('⏎', '\n').replaceAll('␉', '\t')).then(
      (config) => configLines(config).filter((line) => text === BASES[base] || !usual[base].includes(line)),
      (thrown: JobtailError) => {
        expect(thrown.code, written).toBe('config');
        const isSame = thrown.hint === hint;
        hint = thrown.hint ?? '';
        return shown(thrown.message)
          .split('\n')
          .concat(isSame ? [] : [`(${hint})`]);
      },
    );
    expect(result.join('\n'), written).not.toMatch(SECRETS);
    return result;
  });
});
