/** Downloads: names that are safe in a header, and parts of a file. */
import { Refused } from '../refused.ts';

/** What a browser saves it as, whatever it is called (RFC 6266). */
export function attachment(name: string): string {
  const safe = name.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\]/gu, '_');
  const ascii = safe.replaceAll(/[^ !#-[\]-~]|["%]/g, '_');
  const encoded = encodeURIComponent(safe).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

/** [start, end) of one range; undefined for all of it, as where several are asked for. @throws Refused (416) */
export function rangeOf(header: string | undefined, bytes: number): { start: number; end: number } | undefined {
  const [, first, last] = /^bytes=([0-9]{0,16})-([0-9]{0,16})$/.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || first + last === '') return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (start < end) return { start, end };
  throw new Refused(416, `there are ${bytes} bytes`);
}
