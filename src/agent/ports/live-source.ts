/** Where the bytes of live files come from: what a poll needs, whatever brings them. */
import type { JobtailError } from '../../errors.ts';
import type { LiveFileKey } from '../../job.ts';
import type { Remote, Sink } from './server.ts';

/** Which bytes of a live file are requested: those from an offset on. */
export interface BytesRange {
  readonly from: number;
  /** How many bytes from there on are known and undisputed. */
  readonly known: number;
  /** `sameness` of a response to the same request: if this one is the same, nothing else is needed. */
  readonly sameAs?: string | undefined;
  /** Whether an empty response, too, must be certain, and a long one whole. */
  readonly isThorough: boolean;
}

export interface BytesRequest extends LiveFileKey, BytesRange {
  /** The listed name that a response reported earlier. */
  readonly listedName: string | null;
}

/**
 * What follows the certain bytes of a response, at that moment. incomplete-character: its first bytes, whose others may
 * follow. hidden: bytes that only the raw file shows. unclear: the file changed between two responses.
 */
export type WhatFollows = 'nothing' | 'incomplete-character' | 'hidden' | 'unclear';

/** The bytes of one live file from an offset on, as far as they are certain. */
export interface LiveBytes {
  readonly from: number;
  /** Whether the raw bytes themselves were received: then no other bytes overrule them. */
  readonly isRaw: boolean;
  /** The next bytes, at most `max`; empty after the last certain one. Valid until the next call. */
  next(max: number): Promise<Buffer>;
  /** Known after the last certain byte. */
  whatFollows(): Promise<WhatFollows>;
  /** Equal in two responses to one request: the file did not change, unless bytes follow that are not shown. */
  readonly sameness: string | undefined;
  /** Whether the last bytes of the file, as it was then, are certain. */
  readonly isEndCertain: boolean;
  /** How much was received, in bytes: another size shows that the file changed. */
  readonly size: number;
  /** As the service named it; often the same for two tasks (docs/dev/servers.md 1.7). */
  readonly relativePath: string | null;
  readonly raw: RawFile;
  release(): Promise<void>;
}

/** All bytes of a live file. */
export interface RawFile {
  /**
   * Sends them to a sink, from the first one on. `begin` is called for each file on the server that may be the live file:
   * bytes after `from` come only once that is proven. Rejects if the service fails, not if it refuses.
   */
  download(begin: () => Sink): Promise<RawOutcome>;
}

/**
 * Whether all bytes were sent, or why there are none now. `isListed`: the listing alone named the file, so that it proves
 * no difference; `listedName`: its name there, unless several have the same bytes.
 */
export type RawOutcome =
  | { readonly isThere: true; readonly isListed: boolean; readonly listedName?: string | null | undefined }
  | { readonly isThere: false; readonly reason: string };

/** The responses, by `keyText`. A file without one does not exist at present. */
export interface LiveResponses {
  readonly files: ReadonlyMap<string, LiveBytes | JobtailError>;
  /** Entries that were not requested. */
  readonly refused: number;
}

/** The calls of one poll. */
export interface PollCalls {
  readonly remote: Remote;
  /** Downloads whole files; its calls wait in the queue of the job. */
  readonly whole: Remote;
  readonly signal: AbortSignal;
}

/** Where the live files of one job come from. Kept as long as the job is followed. */
export interface LiveSource {
  /** Responses for many files at once. `isFirst`: the first ones of a poll; it rejects if no file of the job could be read. */
  bytes(wanted: readonly BytesRequest[], calls: PollCalls, isFirst: boolean): Promise<LiveResponses>;
  /** Where in the last bytes of a mirror a request begins that shows as many of them as possible again. */
  overlapStart(lastBytes: Buffer): number;
}
