/** What the body of a refusal reports: a problem document, a text of the service, or a page of a server in between. */
import { STATUS_CODES } from 'node:http';
import { titleOf } from './wrong-responses.ts';

export interface Problem {
  /** The message; the whole text if it is no object with a usual field. May contain the session code. */
  readonly words: string;
  readonly title: string;
  /** Whether the words are those of the service, not of the web server. */
  readonly isOwn: boolean;
  readonly isPage: boolean;
}

/** Fields of error objects, the most specific first. */
const FIELDS = ['message', 'detail', 'error_description', 'exceptionmessage', 'title', 'error'];

/** Default texts of ASP.NET for a status. */
const OF_STATUS: ReadonlySet<string> = new Set([
  ...Object.values(STATUS_CODES).map(String),
  'An error occurred while processing your request.',
]);

export function problemOf(text: string): Problem {
  const problem = { words: text, title: '', isOwn: false, isPage: false };
  if (text.trimStart().startsWith('<')) return { ...problem, words: titleOf(text), isPage: true };
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return problem;
  }
  if (typeof value === 'string') return { ...problem, words: value, isOwn: value !== '' };
  if (typeof value !== 'object' || value === null) return problem;
  const fields = new Map(Object.entries(value).map(([key, inner]: [string, unknown]) => [key.toLowerCase(), inner]));
  const wordsAt = (name: string) => {
    const words = fields.get(name);
    return typeof words === 'string' && words !== '' ? words : undefined;
  };
  const words = FIELDS.map(wordsAt).find((found) => found !== undefined);
  return {
    words: withErrors(words ?? text, fields.get('errors')),
    title: wordsAt('title') ?? '',
    isOwn: words !== undefined && !OF_STATUS.has(words),
    isPage: false,
  };
}

/** ASP.NET names the reason only in `errors`: {"RelativeFilePath": ["... maximum length of 50."]}. */
function withErrors(words: string, errors: unknown): string {
  if (typeof errors !== 'object' || errors === null) return words;
  const each = Object.values(errors)
    .flat()
    .filter((error) => typeof error === 'string');
  return [words, ...each].join(' ');
}

/** The meaning of a refusal is at its start. */
const MAX_EXAMINED = 2048;

export const startOf = ({ title, words }: Problem) => `${title} ${words}`.trimStart().slice(0, MAX_EXAMINED);
