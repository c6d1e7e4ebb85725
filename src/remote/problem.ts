/** What a service says in JSON when it refuses (docs/rest.md 4.2). */

/** The usual fields of an error object, those that say most first. */
const FIELDS = ['message', 'detail', 'error_description', 'exceptionmessage', 'title', 'error'];

export interface Problem {
  /** What it says to a person; all of the text if it is no object with a usual field, '' for HTML. */
  readonly words: string;
  readonly title: string;
  /** The words are the service's own, and not those of the server around it. */
  readonly isOwn: boolean;
}

export function problemOf(text: string): Problem {
  if (text.trimStart().startsWith('<')) return { words: '', title: '', isOwn: false };
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return { words: text, title: '', isOwn: false };
  }
  if (typeof value === 'string') return { words: value, title: '', isOwn: value !== '' };
  if (typeof value !== 'object' || value === null) return { words: text, title: '', isOwn: false };
  const fields = new Map(Object.entries(value).map(([key, inner]: [string, unknown]) => [key.toLowerCase(), inner]));
  const wordsAt = (name: string) => {
    const words = fields.get(name);
    return typeof words === 'string' && words !== '' ? words : undefined;
  };
  const words = FIELDS.map(wordsAt).find((found) => found !== undefined);
  // ASP.NET itself names the trace of the request, and says no more than the status does.
  const isOwn = words !== undefined && (fields.has('errors') || !fields.has('traceid'));
  return { words: words ?? text, title: wordsAt('title') ?? '', isOwn };
}
