/** Receives the bulky texts of an answer, one after the other, while the rest of it is still to come. */
export interface Lifted {
  /** A text begins (also an empty one; nil is no text). They are counted from 0. */
  begin(): void;
  /** Whole characters of a text. They are only good until the call returns: whoever keeps them copies them. */
  bytes(bytes: Buffer): void;
  /** It is complete and sound; the rest of the answer may still turn out not to be. */
  end(): void;
  /** Called between network chunks: the answer is not read further before the promise has resolved. */
  flush(): Promise<void>;
  /** The rest of the answer is not wanted. */
  readonly hasEnough?: boolean;
}
