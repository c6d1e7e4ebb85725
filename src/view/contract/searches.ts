/** What is looked for in a content, and what is found while it is read. */

/**
 * `text` is what is looked for, at most 256 characters; `regex` takes it as a regular expression, line by line. Without
 * `from` and `before`: the whole content, counting everything. With `from`, `most` matches that begin at or behind it;
 * with `before`, the last one that begins before it. The search ends when the page closes the answer.
 */
export interface SearchQuery {
  readonly text: string;
  readonly case?: '1';
  readonly word?: '1';
  readonly regex?: '1';
  readonly from?: number;
  readonly before?: number;
  readonly most?: number;
}

/** One line of JSON each (application/x-ndjson). */
export type SearchLine =
  /** Where matches begin and how long they are, in order; the first 10,000 of all. */
  | { readonly at: readonly (readonly [byte: number, length: number])[] }
  /** So far: bytes looked through, of so many, and matches. Several times a second. */
  | { readonly searched: number; readonly of: number; readonly count: number }
  /** Matches in each of 256 equal parts of the content, for marks beside it; before the last line. */
  | { readonly marks: readonly number[] }
  /** The last line. `cut`: why not everything was looked through. */
  | { readonly done: true; readonly count: number; readonly version: string; readonly cut?: string };

/**
 * `like`: a byte of a line with numbers. Alike are the lines with the same words around as many numbers. From `from` to the
 * end as it stands now: to go on as the file grows, ask again from `to`.
 */
export interface NumbersQuery {
  readonly like: number;
  readonly from?: number;
}

/** One line of JSON each (application/x-ndjson). */
export type NumbersLine =
  /** The first line: a name for each number of such a line: the word before it, the head of a CSV file, or `#1`. */
  | { readonly columns: readonly string[]; readonly version: string }
  /** Rows in order: where each line begins, and its numbers; null for one that is not finite. */
  | { readonly at: readonly number[]; readonly rows: readonly (readonly (number | null)[])[] }
  /** The last line. Beyond 50,000 rows only each `every`-th is told. */
  | { readonly done: true; readonly to: number; readonly rows: number; readonly every: number };
