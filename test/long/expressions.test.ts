/** No expression that reads the bytes of a job, or text of the service, can be made slow by them. */
import fs from 'node:fs';
import path from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { expect, it } from 'vitest';
import { attackOn } from './regex-steps.ts';

const SOURCES = path.join(import.meta.dirname, '../../src');

/** Files whose expressions of this kind read text of the operator or of the program alone. */
const OWN_TEXT = [
  'config/load.ts: /\\/\\/.*@/',
  'config/service-schema.ts: /\\/+$/',
  'cli/help.ts: /[<[]([^\\]>]+)[\\]>]/',
  'cli/show/document.ts: /^\\| ?| *\\|$/g',
  'cli/init/answers.ts: /\\/+$/',
  'cli/init/service.ts: /\\/+$/',
  'search/texts.ts: /\\[(?:',
  'remote/signin/operation.ts: /\\/+$/',
];

function literalsIn(value: unknown): RegExp[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(literalsIn);
  const { regex } = value as { regex?: { pattern: string; flags: string } };
  if (regex !== undefined) return [new RegExp(regex.pattern, regex.flags)];
  return Object.values(value).flatMap(literalsIn);
}

const expressions = fs
  .readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .flatMap((name) => {
    const lang = name.endsWith('x') ? 'tsx' : 'ts';
    const text = fs.readFileSync(path.join(SOURCES, name), 'utf8');
    return literalsIn(parseAst(text, { lang })).map((expression) => ({ name, expression }));
  });

/** Of the plot, with which one line of digits took 89 ms, and one of underscores seconds. */
const FORMERLY = [
  /(?<![A-Za-z0-9_.])[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?=[A-Za-z]{0,3}(?![A-Za-z0-9_]|\.[0-9]))/g,
  /([\p{L}_][\p{L}\p{N}_.-]*(?:[ \t]?\([^()]*\))?)[^\p{L}\p{N}]*$/u,
];

it('the count of steps finds expressions that are slow', () => {
  for (const slow of [/(a+)+b/, /[0-9]+\.?[0-9]*x/, /^\s*\s*$x/, /a*b?a*c/, /(?:a|ab|b)*c/, /x+y/, ...FORMERLY])
    expect(attackOn(slow), slow.source).toBeDefined();
  for (const quick of [/^a+b/, /a+/, /^[0-9]+(?:\.[0-9]*)?x/, /(?<![a-z])[a-z]+(?![a-z])/])
    expect(attackOn(quick), quick.source).toBeUndefined();
});

it('every expression takes steps that grow as the text does', () => {
  expect(expressions.length).toBeGreaterThan(150);
  const slow = expressions.flatMap(({ name, expression }) => {
    const attack = attackOn(expression);
    return attack === undefined ? [] : [`${name}: ${expression} ${attack}`];
  });
  expect(slow.filter((each) => !OWN_TEXT.some((known) => each.startsWith(known)))).toEqual([]);
});
