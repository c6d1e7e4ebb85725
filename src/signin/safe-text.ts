/** Words of the other side (a server, a program) for a message: without secrets, on one line, short. */

const MAX_CHARACTERS = 200;
/** Text longer than this is not even looked at to its end. */
const MAX_EXAMINED = 8192;
/** So many characters in a row of a secret are hidden, even if the rest of it is missing. */
const TELLING_CHARACTERS = 8;
const HIDDEN = '***';

/** GUIDs, JSON web tokens and Authorization values are secrets, whosever they are. */
const LIKE_SECRETS =
  /\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b|\beyJ[\w-]{8,}(?:\.[\w-]*)*|(?<=\bbearer\s+)[^\s"',]+/gi;

/** `text` on one line of at most 200 characters, with nothing of `secrets` in it, in whatever way it is escaped. */
export function safeText(text: string, secrets: readonly string[]): string {
  const clean = withoutSecrets(text.slice(0, MAX_EXAMINED), secrets)
    .replaceAll(LIKE_SECRETS, HIDDEN)
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
  const characters = [...clean];
  return characters.length > MAX_CHARACTERS ? `${characters.slice(0, MAX_CHARACTERS).join('')}...` : clean;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  const folded = lowerCase(text);
  const isHidden = new Uint8Array(text.length);
  for (const form of new Set(secrets.flatMap(formsOf))) {
    const width = Math.min(TELLING_CHARACTERS, form.length);
    const pieces = new Set(Array.from({ length: form.length - width + 1 }, (_, at) => form.slice(at, at + width)));
    for (let at = 0; at + width <= folded.length; at++) {
      if (pieces.has(folded.slice(at, at + width))) isHidden.fill(1, at, at + width);
    }
  }
  let shown = '';
  for (let at = 0; at < text.length; at++) {
    if (isHidden[at] === 0) shown += text.charAt(at);
    else if (isHidden[at - 1] !== 1) shown += HIDDEN;
  }
  return shown;
}

/** A secret in the ways a text can hold it. */
function formsOf(secret: string): string[] {
  if (secret === '') return [];
  const json = JSON.stringify(secret).slice(1, -1);
  const asciiJson = json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const bytes = Buffer.from(secret);
  const url = new URLSearchParams({ s: secret }).toString().slice('s='.length);
  const forms = [secret, json, asciiJson, html, html.replaceAll('"', '&quot;').replaceAll("'", '&#39;'), url];
  forms.push(url.replaceAll('+', '%20'), bytes.toString('base64'), bytes.toString('base64url'));
  return forms.map(lowerCase);
}

/** ASCII only, so that no position moves. */
const lowerCase = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
