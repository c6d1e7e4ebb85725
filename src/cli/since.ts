/** A moment as people say it: `10m`, `2h`, `2026-03-01T12:00:00`. */

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds since 1970, or undefined if `text` is no moment. A bare number is seconds ago. */
export function parseSince(text: string, now: number): number | undefined {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)(s|m|h|d)?$/.exec(text) ?? [];
  if (number !== undefined) return now - Number(number) * (UNITS_MS[unit] ?? 0);
  // Without a date, Date.parse would take all sorts of words for one.
  if (!/^\d{4}-\d{2}-\d{2}/.test(text)) return undefined;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : moment;
}
