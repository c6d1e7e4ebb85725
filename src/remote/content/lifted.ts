/**
 * Receives the bulky parts of an answer, one after the other, while the rest of it is still to come: texts, or records
 * that have elements of their own.
 */
export interface Lifted {
  /** A text or record begins (also an empty one; nil is none). They are counted from 0. */
  begin(): void;
  /** Of a record: an element within it begins, or ends. Its name is empty if it is of another namespace. */
  readonly element?: { open(name: string): void; close(): void };
  /**
   * Whole characters of a text, or of the element of a record that was opened last. Only valid until the call returns:
   * a receiver that stores them copies them.
   */
  bytes(bytes: Buffer): void;
  /** It is complete and sound; the rest of the answer may still turn out not to be. */
  end(): void;
  /** Called between network chunks: the answer is not read further before the promise has resolved. */
  flush(): Promise<void>;
  /** The rest of the answer is not wanted. */
  readonly hasEnough?: boolean;
}
