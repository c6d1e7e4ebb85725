/** A response of a source of live bytes, as a test gives it. */
import type { LiveBytes, RawOutcome, WhatFollows } from '../../src/agent/ports/live-source.ts';

/** What a response shows of the file. */
export interface Shown {
  /** The whole file, as far as the response shows it. */
  readonly text?: string;
  readonly from?: number;
  readonly follows?: WhatFollows;
  readonly isEndCertain?: boolean;
  readonly sameness?: string | undefined;
  readonly relativePath?: string;
  /** The raw file, or why there is none. */
  readonly raw?: string | Buffer | { readonly reason: string };
  readonly listedName?: string;
}

export function responseOf(shown: Shown, onDownload: () => void): LiveBytes {
  const { text = '', from = 0, follows = 'nothing', isEndCertain = true, sameness, listedName } = shown;
  const { relativePath = '/stdout.txt', raw = { reason: 'it is refused' } } = shown;
  const bytes = Buffer.from(text);
  let at = from;
  const download = async (begin: () => (piece: Buffer) => Promise<void>): Promise<RawOutcome> => {
    onDownload();
    if (typeof raw === 'object' && 'reason' in raw) return { isThere: false, reason: raw.reason };
    await begin()(Buffer.from(raw));
    return { isThere: true, isListed: false, listedName };
  };
  return {
    ...{ from, isRaw: false, isEndCertain, relativePath, size: bytes.length - from, sameness },
    raw: { download },
    whatFollows: async () => follows,
    next: async (max) => {
      const next = bytes.subarray(at, at + max);
      at += next.length;
      return next;
    },
    release: async () => {},
  };
}
