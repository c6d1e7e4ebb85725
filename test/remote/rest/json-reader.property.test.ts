import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Value } from '../../../src/remote/content/values.ts';
import { anyCharacter, numRuns } from '../../support/property-runs.ts';
import { attempted, cuts, scanJson, writtenBytes } from '../../support/wire-scan.ts';

/** Some JSON, and what it is. */
interface Written {
  readonly json: string;
  readonly value: unknown;
}

const character = fc.oneof(fc.constantFrom(...'"\\/{}[]:, u0\0\b\f\n\r\t\x1b\x7fé€\uFEFF\uFFFD😀'), anyCharacter);

const unit = (code: number, upper: boolean) => {
  const digits = code.toString(16).padStart(4, '0');
  return `\\u${upper ? digits.toUpperCase() : digits}`;
};

/** A character as itself where it may be, as a short escape where there is one, or by its numbers. */
const writtenCharacter = fc.tuple(character, fc.nat(3)).map(([text, style]) => {
  if (style >= 2) return { json: escapedUnits(text, style === 3), text };
  return { json: style === 1 && text === '/' ? '\\/' : JSON.stringify(text).slice(1, -1), text };
});

function escapedUnits(text: string, upper: boolean): string {
  return text
    .split('')
    .map((half) => unit(half.charCodeAt(0), upper))
    .join('');
}

/** A text with the quotes around it, written in any of the ways JSON has. */
const writtenText = fc.array(writtenCharacter, { maxLength: 12 }).map((characters) => ({
  json: `"${characters.map(({ json }) => json).join('')}"`,
  value: characters.map(({ text }) => text).join(''),
}));

const space = fc.constantFrom('', '', '', ' ', '\n', '\r\n', '\t');

const scalar: fc.Arbitrary<Written> = fc.oneof(
  writtenText,
  fc.constantFrom('true', 'false', 'null').map((json) => ({ json, value: JSON.parse(json) as unknown })),
  fc
    .constantFrom('0', '-0', '7', '-12', '0.5', '1e3', '1E+3', '2.25e-3')
    .map((json) => ({ json, value: Number(json) })),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((number) => ({ json: `${number}`, value: Number(`${number}`) })),
);

/** Names that differ by more than their case. */
const names = fc.uniqueArray(writtenText, { maxLength: 4, selector: ({ value }) => value.toLowerCase() });

const writtenJson: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.tuple(fc.array(tie('value'), { maxLength: 4 }), space).map(([items, gap]) => ({
      json: `[${gap}${items.map(({ json }) => json).join(`${gap},${gap}`)}${gap}]`,
      value: items.map(({ value }) => value),
    })),
    fc.tuple(names, fc.array(tie('value'), { minLength: 4, maxLength: 4 }), space).map(([keys, values, gap]) => ({
      json: `{${gap}${keys.map(({ json }, at) => `${json}${gap}:${gap}${values[at]?.json}`).join(`${gap},${gap}`)}${gap}}`,
      value: Object.fromEntries(keys.map(({ value }, at) => [value, values[at]?.value])),
    })),
  ),
})).value;

interface PartsJson {
  readonly json: string;
  /** The text of each entry; null if it is null or absent. */
  readonly texts: readonly (string | null)[];
}

/** An answer of DownloadPartsOfJobFilesFromCluster. */
const partsJson: fc.Arbitrary<PartsJson> = fc
  .tuple(
    fc.array(fc.oneof({ weight: 4, arbitrary: writtenText }, fc.constantFrom('null', 'absent')), { maxLength: 3 }),
    fc.constantFrom('Content', 'content', 'CONTENT'),
    space,
  )
  .map(([contents, name, gap]) => {
    const entries = contents.map((content, index) => {
      const written =
        content === 'absent' ? '' : `"${name}":${gap}${typeof content === 'string' ? 'null' : content.json},`;
      return `{${gap}${written}"Offset":${index}${gap}}`;
    });
    return {
      json: `[${gap}${entries.join(`${gap},`)}${gap}]`,
      texts: contents.map((content) => (typeof content === 'string' ? null : content.value)),
    };
  });

const RUNS = numRuns(3_000);

/** What JSON.parse takes and the reader does not, on purpose. */
const STRICTER = /two members of one name|half of a surrogate pair|nested deeper/;

/** Leaves as texts, names in lower case. */
function asValue(value: unknown): Value {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(asValue);
  if (typeof value !== 'object') return String(value);
  return new Map(Object.entries(value).map(([name, inner]) => [name.toLowerCase(), asValue(inner)]));
}

/** JSON.parse rounds what the reader keeps exactly: whole numbers beyond 2^53. */
function rounded(value: Value): Value {
  if (typeof value === 'string') return /^-?\d{16,}$/.test(value) ? String(Number(value)) : value;
  if (Array.isArray(value)) return value.map(rounded);
  return value instanceof Map ? new Map([...value].map(([name, inner]) => [name, rounded(inner)])) : value;
}

function parsed(document: string): { value: Value } | undefined {
  try {
    return { value: asValue(JSON.parse(document)) };
  } catch {
    return undefined;
  }
}

// They take seconds, but not on a busy machine.
describe('of random documents,', () => {
  test('a document means what it was written for, and what JSON.parse says, however the network cuts it', () => {
    fc.assert(
      fc.property(writtenJson, cuts, ({ json, value }, at) => {
        const { rest } = scanJson(json, 'nothing', at);
        expect(rest).toEqual(asValue(value));
        expect(rest).toEqual(asValue(JSON.parse(json)));
      }),
      RUNS,
    );
  });

  test('the items of a list are those of JSON.parse, whatever they are', () => {
    fc.assert(
      fc.property(fc.array(writtenJson, { maxLength: 4 }), cuts, (items, at) => {
        const document = `[${items.map(({ json }) => json).join(' , ')}]`;
        const scanned = scanJson(document, 'items', at);
        expect(scanned).toMatchObject({ rest: null, items: items.map(({ value }) => asValue(value)) });
      }),
      RUNS,
    );
  });

  test('texts come out to the byte, each for its item', () => {
    fc.assert(
      fc.property(partsJson, cuts, ({ json, texts }, at) => {
        const scanned = scanJson(json, 'parts', at);
        expect(scanned.texts).toEqual(texts.flatMap((text) => (text === null ? [] : [Buffer.from(text)])));
        let index = 0;
        expect(scanned.contents).toEqual(texts.map((text) => (text === null ? undefined : index++)));
        expect(scanned.items.map((item) => (item as Map<string, Value>).get('offset'))).toEqual(
          texts.map((_, at) => String(at)),
        );
      }),
      RUNS,
    );
  });

  test('of damaged documents those are accepted that JSON.parse accepts, with the same value', () => {
    const damage = fc.tuple(
      fc.nat(300),
      fc.nat(3),
      fc.constantFrom('', ...'"\\{}[],:u0-.e \n\0/', '\\u', '\\ud83d', 'null'),
    );
    fc.assert(
      fc.property(writtenJson, fc.array(damage, { minLength: 1, maxLength: 3 }), cuts, ({ json }, damages, at) => {
        let document = json;
        for (const [position, removed, added] of damages) {
          const place = position % (document.length + 1);
          document = document.slice(0, place) + added + document.slice(place + removed);
        }
        if (!document.isWellFormed() || document.startsWith('\uFEFF')) return;
        const scanned = attempted(() => scanJson(document, 'nothing', at));
        const whole = attempted(() => scanJson(document, 'nothing'));
        const reference = parsed(document);
        if (typeof scanned === 'string') {
          expect([scanned, whole]).toEqual([scanned, whole].map(() => expect.stringMatching(/^malformed: /)));
          if (!STRICTER.test(scanned)) expect(reference).toBeUndefined();
        } else {
          expect(whole).toEqual(scanned);
          expect(reference && rounded(reference.value)).toEqual(rounded(scanned.rest));
        }
      }),
      RUNS,
    );
  });

  test('a document that ends early is an error', () => {
    fc.assert(
      fc.property(partsJson, fc.nat(), cuts, ({ json }, length, at) => {
        const bytes = Buffer.from(json);
        const cut = bytes.subarray(0, length % bytes.length);
        expect(attempted(() => scanJson(cut, 'parts', at))).toMatch(/^malformed: /);
      }),
      RUNS,
    );
  });

  test('base64 decodes to the bytes it was made of, however it is written and cut', () => {
    fc.assert(
      fc.property(writtenBytes, fc.boolean(), cuts, ({ xml: base64, bytes }, escapes, at) => {
        // System.Text.Json writes + so.
        const json = escapes
          ? JSON.stringify(base64).replaceAll('+', '\\u002B').replaceAll('/', '\\/')
          : JSON.stringify(base64);
        expect(scanJson(json, 'file', at)).toMatchObject({ texts: [bytes], rest: '' });
      }),
      RUNS,
    );
  });
});
