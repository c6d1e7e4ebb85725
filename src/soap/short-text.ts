/** Words of a server as a message or a log may show them. */

/** Sessions are GUIDs on most servers (field notes 3), and a server may write them differently than it was sent. */
const GUID = /\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b/gi;

/** Control and format characters could steer the terminal of whoever reads the log. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\u2028\u2029]/gu;

/** Longer texts are cut before they are looked through. */
const MAX_INPUT_LENGTH = 64 * 1024;

/** One line of at most `maxLength` characters. */
export function shortText(text: string, maxLength: number): string {
  const line = text.slice(0, MAX_INPUT_LENGTH).replace(UNPRINTABLE, escapeCharacter).trim();
  return line.length > maxLength ? `${line.slice(0, maxLength)}...` : line;
}

/** The same without `secret` and whatever looks like a session code. */
export function redactedText(text: string, secret: string, maxLength: number): string {
  const input = text.slice(0, MAX_INPUT_LENGTH);
  const known = secret === '' ? input : input.replaceAll(new RegExp(escapePattern(secret), 'gi'), '[redacted]');
  return shortText(known.replace(GUID, '[redacted]'), maxLength);
}

function escapeCharacter(character: string): string {
  if (character === '\n' || character === '\r' || character === '\t') return ' ';
  const point = character.codePointAt(0) ?? 0;
  return `\\u{${point.toString(16)}}`;
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
