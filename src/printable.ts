/** Text from outside (a server, a job, a program, a file) where a person or a program reads it: nothing in it acts. */

/** What is not visible: it moves the cursor, hides text, or turns the direction of the text around it. */
const INVISIBLE = String.raw`[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]`;
const UNSEEN = new RegExp(INVISIBLE, 'gu');
/** A joiner or a variation selector that shapes the character before it, as in Hindi and in emoji of several parts. */
const SHAPING = String.raw`(?<=[\p{Lo}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d\ufe0e\ufe0f]`;
/** The same characters in text that is shown as it is, by a terminal or a page (source of an expression with the flag u). */
export const INVISIBLE_IN_TEXT: string = `(?!${SHAPING})${INVISIBLE}`;
/** What JSON may hold as it is, and a terminal had better not. */
const UNSEEN_UNITS = /[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu;

/** On one line: what is not visible is written as its number. */
export function printable(text: string): string {
  return text.replaceAll(UNSEEN, (character) => {
    const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `\\u{${number}}`;
  });
}

/** The same for several lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Without the full stop at its end, for a sentence that goes on. */
export const withoutStop = (text: string): string => text.replace(/(?<!\.)\.$/, '');

/** JSON that means the same wherever it is shown: what is not visible is escaped. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(UNSEEN_UNITS, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      const number = character.charCodeAt(at).toString(16).padStart(4, '0');
      return `\\u${number}`;
    }).join(''),
  );
}

/** A log event as a line for people: the phrase, its fields as `name=value`, the error, and the hint. */
export function logLine({ err, hint, ...fields }: Readonly<Record<string, unknown>>, phrase: string): string {
  const texts = Object.entries(fields).map(([name, value]) => [name, Array.isArray(value) ? value.join('; ') : value]);
  const named = texts.filter(([, value]) => value !== undefined && value !== null && value !== '');
  const shown = named.map(([name, value]) => `${name}=${fieldText(value)}`);
  const cause = err === undefined || err === null ? '' : `: ${err}`;
  return `${[phrase, ...shown].join(' ')}${cause}${hint === undefined ? '' : ` (${hint})`}`;
}

/** Quoted where it would not read as one word. */
function fieldText(value: unknown): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
