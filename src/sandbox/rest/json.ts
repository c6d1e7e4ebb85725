/** Writes JSON as the releases do (docs/rest.md 1.3): whole values at once, and long texts in pieces. */
import type { SandboxHabits } from '../habits.ts';

type Style = Pick<SandboxHabits, 'memberCase' | 'escapesAll'>;

/** What .NET escapes besides what JSON requires. */
const ESCAPED = /[\u007f-\uffff<>&'+`]/g;

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

/** What stands between the quotes of a string, or of a piece of one. */
export function escaped(text: string, { escapesAll }: Style): string {
  const json = JSON.stringify(text).slice(1, -1);
  return escapesAll ? json.replace(ESCAPED, unicodeEscape) : json;
}

/** A member with its quotes; written with a capital letter where it is not of ASP.NET itself. */
export function memberName(name: string, { memberCase }: Style): string {
  return memberCase === 'pascal' ? `"${name}"` : `"${name.charAt(0).toLowerCase()}${name.slice(1)}"`;
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}
