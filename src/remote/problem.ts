/** The JSON of a service that refuses a request (docs/rest.md 4.2). */
import { STATUS_CODES } from 'node:http';

/** The usual fields of an error object, the most specific first. */
const FIELDS = ['message', 'detail', 'error_description', 'exceptionmessage', 'title', 'error'];

/** The default texts of ASP.NET for a status. */
const OF_STATUS: ReadonlySet<string> = new Set([
  ...Object.values(STATUS_CODES).map(String),
  'An error occurred while processing your request.',
]);

export interface Problem {
  /** Its message for people; all of the text if it is no object with a usual field, '' for HTML. */
  readonly words: string;
  readonly title: string;
  /** The words are the service's own, and not those of the server around it. */
  readonly isOwn: boolean;
  /** It is HTML. */
  readonly isPage: boolean;
}

export function problemOf(text: string): Problem {
  if (text.trimStart().startsWith('<')) return { words: '', title: '', isOwn: false, isPage: true };
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return { words: text, title: '', isOwn: false, isPage: false };
  }
  if (typeof value === 'string') return { words: value, title: '', isOwn: value !== '', isPage: false };
  if (typeof value !== 'object' || value === null) return { words: text, title: '', isOwn: false, isPage: false };
  const fields = new Map(Object.entries(value).map(([key, inner]: [string, unknown]) => [key.toLowerCase(), inner]));
  const wordsAt = (name: string) => {
    const words = fields.get(name);
    return typeof words === 'string' && words !== '' ? words : undefined;
  };
  const words = FIELDS.map(wordsAt).find((found) => found !== undefined);
  const isOwn = words !== undefined && !OF_STATUS.has(words);
  return {
    words: withErrors(words ?? text, fields.get('errors')),
    title: wordsAt('title') ?? '',
    isOwn,
    isPage: false,
  };
}

/**
 * The framework names what is wrong with a request only in `errors`: {"RelativeFilePath": ["... maximum length of
 * 50."]}.
 */
function withErrors(words: string, errors: unknown): string {
  if (typeof errors !== 'object' || errors === null) return words;
  const each = Object.values(errors)
    .flat()
    .filter((error) => typeof error === 'string');
  return each.length === 0 ? words : `${words} ${each.join(' ')}`;
}
