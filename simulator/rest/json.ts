/** Writes JSON as the releases do (docs/dev/rest.md 1.3): whole values at once, and long texts in pieces. */

/** What the relaxed encoder of .NET escapes besides what JSON requires, by code point. */
const RELAXED = /[\p{Cc}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{10000}-\u{10ffff}]|(?! )\p{Zs}/gu;

/** A value; a `bigint` is a number of 64 bits. */
export function jsonOf(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return `"${escaped(value)}"`;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, inner]) => `"${name}":${jsonOf(inner)}`)
    .join(',')}}`;
}

/** The members that are named, in their order; one that is not there is null. */
export function membersOf(value: Readonly<Record<string, unknown>>, names: string): Record<string, unknown> {
  return Object.fromEntries(names.split(' ').map((name) => [name, value[name] ?? null]));
}

/** What stands between the quotes of a string, or of a piece of one. */
export function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1).replace(RELAXED, unicodeEscapes);
}

/** Each half of a pair by itself. */
function unicodeEscapes(character: string): string {
  const codes = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return codes.map((code) => `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`).join('');
}
