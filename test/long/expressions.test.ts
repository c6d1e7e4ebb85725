/** No expression that reads the bytes of a job, or text of the service, can be made slow by them. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { parseAst } from 'rolldown/parseAst';
import { expect, it } from 'vitest';
import { cpuMs } from '../support/cpu-cost.ts';

const SOURCES = path.join(import.meta.dirname, '../../src');

/** Files whose expressions of this kind read text of the operator or of the program alone. */
const OWN_TEXT = [
  'config/load.ts: /\\/\\/.*@/',
  'config/service-schema.ts: /\\/+$/',
  'cli/help.ts: /^error: ',
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

/** How often a text is repeated: few times, because of those that take exponential time. */
const TIMES = [8, 12, 16, 20, 24, 28, 32, 200, 6_000];
/** Of a number of steps that grows with the text, a search takes microseconds. */
const MAX_MS = 2;
/** What may keep the text before it from being a match. */
const ENDS = ['', '\u0001', '_', '\u0001a'];

/** Texts that it might match; what it looks at only, and classes that are not drawn, are written otherwise. */
function samplesOf({ source, flags }: RegExp): string[] {
  const others: Readonly<Record<string, string>> = {
    '\\b': '',
    '\\0': '\\x00',
    '\\p{L}': 'a-z',
    '\\p{N}': '0-9',
    '{': '\\{',
  };
  const drawn = source
    .replaceAll(/\(\?<?[=!]/g, '(?:')
    .replaceAll(/\\(?:[b0]|p\{\w+\}|u\{\w+\}|.)/gs, (one) => others[one] ?? (/^\\[pu]\{/.test(one) ? '\\x01' : one));
  const matching = fc.stringMatching(new RegExp(`^(?:${drawn})$`, flags.replaceAll(/[gimuy]/g, '')));
  return fc.sample(matching, { numRuns: 6, seed: 1 }).map((text) => text.slice(0, 60));
}

/** A text, repeated, for which the time grows faster than it does; undefined if none of those tried is. */
function attackOn(expression: RegExp): string | undefined {
  const outside = expression.source.replaceAll(/\[(?:\\.|[^\]\\])*\]|\\./gs, 'x');
  if (!/[*+]|,\}|\{\d{3}/.test(outside)) return undefined;
  const searched = expression.sticky ? expression : new RegExp(expression, `${expression.flags.replace('g', '')}g`);
  const samples = ['', ...samplesOf(expression)];
  const drawn = samples.join('').match(/./gsu) ?? [];
  // What is repeated without an end is the most frequent.
  const often = (one: string) => drawn.filter((other) => other === one).length;
  const characters = [...new Set(drawn)].sort((a, b) => often(b) - often(a)).slice(0, 6);
  const pumps = characters.flatMap((one) => [one, ...characters.map((other) => one + other)]);
  const begins = new Set(samples.flatMap((sample) => [0, 1, 2, 4, 8, 16].map((length) => sample.slice(0, length))));
  const attacks = [...begins].flatMap((begin) => pumps.map((pump) => ({ begin, pump })));
  for (const { begin, pump } of attacks)
    for (const end of ENDS)
      for (const times of TIMES) {
        const text = begin + pump.repeat(times / pump.length) + end;
        const before = performance.now();
        text.replace(searched, '');
        if (performance.now() - before < MAX_MS || cpuMs(() => text.replace(searched, '')) < MAX_MS) continue;
        return JSON.stringify(`${begin}(${pump})*${end}`);
      }
  return undefined;
}

/** Of the plot, with which one line of digits took 89 ms, and one of underscores seconds. */
const FORMERLY = [
  /(?<![A-Za-z0-9_.])[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?=[A-Za-z]{0,3}(?![A-Za-z0-9_]|\.[0-9]))/g,
  /([\p{L}_][\p{L}\p{N}_.-]*(?:[ \t]?\([^()]*\))?)[^\p{L}\p{N}]*$/u,
];

it('expressions that are slow are found', () => {
  for (const slow of [/(a+)+b/, /[0-9]+\.?[0-9]*x/, /^\s*\s*$x/, /a*b?a*c/, /(?:a|ab|b)*c/, /x+y/, ...FORMERLY])
    expect(attackOn(slow), slow.source).toBeDefined();
  for (const quick of [/^a+b/, /a+/, /^[0-9]+(?:\.[0-9]*)?x/, /(?<![a-z])[a-z]+(?![a-z])/])
    expect(attackOn(quick), quick.source).toBeUndefined();
});

it('every expression takes a time that grows as the text does', () => {
  expect(expressions.length).toBeGreaterThan(150);
  const slow = expressions.flatMap(({ name, expression }) => {
    const attack = attackOn(expression);
    return attack === undefined ? [] : [`${name}: ${expression} ${attack}`];
  });
  expect(slow.filter((each) => !OWN_TEXT.some((known) => each.startsWith(known)))).toEqual([]);
});
