/** The content of a response besides its bulky texts, in one form for both protocols. */
import { parseLong } from '../../job.ts';
import { malformed } from '../wrong-responses.ts';
import type { Lifted } from './lifted.ts';

/** Numbers are texts, because ids have 64 bits. In XML, an element that occurs again makes a list. */
export type Value = string | null | readonly Value[] | Fields;

/** The names are in lower case. */
export type Fields = ReadonlyMap<string, Value>;

/** Bytes of one item, or of a response without items: parsing it blocks the process. */
export const MAX_ITEM_BYTES = 4 * 1024 * 1024;
export const MAX_DEPTH = 64;

/** What is taken out of a response while it arrives. */
export interface Taken {
  /** Receives the file, or the content of each item. */
  readonly lifted?: Lifted | undefined;
  /** Receives each item of the list that the operation returns; `text`: which lifted text belongs to it. */
  readonly onItem?: ((item: Value, text: number | undefined) => void) | undefined;
}

export interface ReaderOptions extends Taken {
  /** Maximum bytes besides lifted texts. */
  readonly maxBytes: number;
}

/** The member of an item whose text is lifted. */
export const CONTENT = 'content';

/** @throws JobtailError malformed */
export function fieldsOf(value: Value | undefined): Fields | null {
  if (value === undefined || value === null) return null;
  if (value instanceof Map) return value as Fields;
  // An element without content.
  if (typeof value === 'string' && value.trim() === '') return new Map();
  throw malformed('something else stands where named values are expected');
}

/** @throws JobtailError malformed */
export function textOf(value: Value | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw malformed('something else stands where a text is expected, or it stands twice');
  return value;
}

/** A whole number of 64 bits in its shortest form. @throws JobtailError malformed */
export function longOf(value: Value | undefined): string | null {
  const text = textOf(value);
  const long = text === null ? null : parseLong(text.trim());
  if (long === undefined) throw malformed('something else stands where a whole number is expected');
  return long;
}

/** The items of a list; of an element, the elements in it. */
export function itemsOf(value: Value | undefined): readonly Value[] {
  if (value instanceof Map) return [...(value as Fields).values()].flat();
  return Array.isArray(value) ? value : [];
}
