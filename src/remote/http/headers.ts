/** The few headers of an answer that matter. */

/** A wish beyond this is taken for this: a server must not be able to silence the agent for good. */
const MAX_RETRY_AFTER_MS = 60 * 60 * 1000;

/** The first value of a header, '' if there is none. */
export function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** `text/xml` out of `Text/XML; charset=utf-8`. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** `utf-8` out of `text/xml; charset="UTF-8"`. */
export function charsetOf(contentType: string): string {
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType);
  return (charset?.[1] ?? charset?.[2] ?? '').trim().toLowerCase();
}

/**
 * `Retry-After` in milliseconds: seconds or a date; undefined if absent or not understood. A date is held against the
 * one of the answer itself (`Date`), for the server's clock may be another than that of this machine.
 */
export function retryAfterMsOf(value: string, answeredAt: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (text === '') return undefined;
  const answeredMs = Date.parse(answeredAt);
  const fromMs = Number.isNaN(answeredMs) ? nowMs : answeredMs;
  const waitMs = /^[0-9]{1,15}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - fromMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}
