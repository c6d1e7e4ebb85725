/** Where somebody wants to go, as it is typed: `1200` a line, `@4096` a byte, `50%` of the content. */
export type Destination = { readonly line: number } | { readonly byte: number };

/** Undefined if it is none of them. Lines are typed from 1, and counted from 0. */
export function destination(typed: string, total: number): Destination | undefined {
  const text = typed.replaceAll(/[\s,_]/g, '');
  const [, line] = /^(?:l|line|:)?([0-9]{1,15})$/i.exec(text) ?? [];
  if (line !== undefined) return { line: Math.max(0, Number(line) - 1) };
  const [, byte] = /^(?:@|b|byte)([0-9]{1,15})$/i.exec(text) ?? [];
  if (byte !== undefined) return { byte: Math.min(Number(byte), Math.max(0, total - 1)) };
  const [, percent] = /^([0-9]{1,3}(?:\.[0-9]+)?)%$/.exec(text) ?? [];
  return percent === undefined
    ? undefined
    : { byte: Math.min(Math.max(0, total - 1), Math.floor((Number(percent) / 100) * total)) };
}
