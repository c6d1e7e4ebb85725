/** Random JSON documents and what they mean, for properties of the readers. */
import fc from 'fast-check';

/** Some JSON, and what it is. */
export interface Written {
  readonly json: string;
  readonly value: unknown;
}

const character = fc.oneof(
  fc.constantFrom(...'"\\/{}[]:, u0\0\b\f\n\r\t\x1b\x7fé€\uFEFF\uFFFD😀'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((text) => text.isWellFormed()),
);

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
export const writtenText = fc.array(writtenCharacter, { maxLength: 12 }).map((characters) => ({
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

export const writtenJson: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
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
export const partsJson: fc.Arbitrary<PartsJson> = fc
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
