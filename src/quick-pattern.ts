/** Patterns of people: a text as an expression, and patterns as in .gitignore that a name cannot hold up. */

/** The expression that matches a text as it is. */
export const literal = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Whether a pattern has at most two `**` before its end: with more, some names would take seconds each. */
export function isQuickPattern(pattern: string): boolean {
  const [, ...beforeEnd] = pattern.replace(/\/$/, '').split('/').reverse();
  return beforeEnd.filter((part) => /^\*\*+$/.test(part)).length <= 2;
}
