/** Writes JSON as the releases do (docs/dev/rest.md 1.3): whole values at once, and long texts in pieces. */
import type { SandboxHabits } from '../habits.ts';

type Style = Pick<SandboxHabits, 'memberCase' | 'escapesAll'>;

/** What the relaxed encoder of .NET escapes besides what JSON requires, by code point; and what its default one does. */
const RELAXED = /[\p{Cc}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{10000}-\u{10ffff}]|(?! )\p{Zs}/gu;
const ALL = /[\u007f-\uffff<>&'+`]/g;

/** A value; a `bigint` is a number of 64 bits. */
export function jsonOf(value: unknown, style: Style): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return `"${escaped(value, style)}"`;
  if (Array.isArray(value)) return `[${value.map((one) => jsonOf(one, style)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, inner]) => `${memberName(name, style)}:${jsonOf(inner, style)}`)
    .join(',')}}`;
}

/** The members that are named, in their order; one that is not there is null. */
export function membersOf(value: Readonly<Record<string, unknown>>, names: string): Record<string, unknown> {
  return Object.fromEntries(names.split(' ').map((name) => [name, value[name] ?? null]));
}

/** What stands between the quotes of a string, or of a piece of one. */
export function escaped(text: string, { escapesAll }: Style): string {
  const json = JSON.stringify(text).slice(1, -1);
  return json.replace(escapesAll ? ALL : RELAXED, unicodeEscapes);
}

/** A member with its quotes; written with a capital letter where it is not of ASP.NET itself. */
export function memberName(name: string, { memberCase }: Style): string {
  return memberCase === 'pascal' ? `"${name}"` : `"${name.charAt(0).toLowerCase()}${name.slice(1)}"`;
}

/** Each half of a pair by itself. */
function unicodeEscapes(character: string): string {
  const codes = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return codes.map((code) => `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`).join('');
}
