/** The live files of one job over a service that sends text: docs/dev/servers.md 1. */
import type { BytesRequest, LiveBytes, LiveResponses, LiveSource, PollCalls } from '../../agent/ports/live-source.ts';
import type { CapabilityStore, Part, PartRequest } from '../../agent/ports/server.ts';
import type { DirectBytes } from '../../agent/ports/transfer.ts';
import type { JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { type BatchLimit, BatchReader, type PartBatch } from './batch.ts';
import { placeWithoutMark, shownFrom, shownWidth, UNCUT_BYTES } from './blocks.ts';
import { TextDecoding } from './decoding.ts';
import { type RawMemory, RawText } from './raw-text.ts';
import { TextBytes } from './text-bytes.ts';

/** A longer text is downloaded raw. A file six times as long costs at most 1.5 times its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;

export interface TextSourceOptions {
  readonly capabilities: CapabilityStore;
  /** Brings raw bytes that the service fails to send. */
  readonly direct: DirectBytes | null;
  /** Called if the server decodes otherwise than before. */
  readonly onChange: (what: string) => void;
  /** Shared by all that request text. */
  readonly batchLimit: BatchLimit;
  /** Bytes of text that make a backlog a long one; `LONG_BACKLOG_BYTES` if omitted. */
  readonly longBacklogBytes?: number | undefined;
}

/** The sources of all jobs. */
export function textSources(options: TextSourceOptions): (jobId: JobId) => LiveSource {
  const decoding = new TextDecoding(options.capabilities, options.onChange);
  return (jobId) => new TextSource(jobId, options, decoding);
}

class TextSource implements LiveSource {
  readonly #jobId: JobId;
  readonly #options: TextSourceOptions;
  readonly #decoding: TextDecoding;
  readonly #batches: BatchReader;
  /** By `keyText`, of files whose raw bytes were requested. */
  readonly #memories = new Map<string, RawMemory>();

  constructor(jobId: JobId, options: TextSourceOptions, decoding: TextDecoding) {
    this.#jobId = jobId;
    this.#options = options;
    this.#decoding = decoding;
    this.#batches = new BatchReader(jobId, options.batchLimit);
  }

  async bytes(wanted: readonly BytesRequest[], calls: PollCalls, isFirst: boolean): Promise<LiveResponses> {
    const requests = wanted.map((request) => this.#partRequest(request));
    const batch = await this.#read(requests, calls, isFirst);
    const texts = new Map<string, TextBytes>();
    const errors = new Map<string, JobtailError>(batch.errors);
    let { refused } = batch;
    try {
      for (const request of wanted) {
        const name = keyText(request);
        const part = batch.parts.get(name);
        if (part !== undefined) texts.set(name, await this.#textOf(part, request, calls));
        // The service reads the file, and only its text is too long to be sent.
        if (part?.isBeginning) errors.delete(name);
      }
      const changed = wanted.filter((request) => !needsNoMore(request, texts.get(keyText(request))));
      for (let open = changed; open.length > 0; ) {
        const doubts = new Map<BytesRequest, { kind: 'start' | 'cut'; offset: number }>();
        for (const request of open) {
          const doubt = await texts.get(keyText(request))?.doubt();
          if (doubt !== undefined) doubts.set(request, doubt);
        }
        open = [...doubts.keys()];
        if (open.length === 0) break;
        const more = [...doubts].map(([{ taskId, file }, { offset }]) => ({ taskId, file, offset }));
        const found = await this.#read(more, calls, false);
        refused += found.refused;
        for (const [request, doubt] of doubts) {
          const name = keyText(request);
          const error = found.errors.get(name);
          if (error !== undefined) errors.set(name, error);
          await texts.get(name)?.settle(doubt, found.parts.get(name));
        }
      }
    } catch (error) {
      for (const text of texts.values()) await text.release();
      throw error;
    }
    for (const name of errors.keys()) await texts.get(name)?.release();
    return { files: new Map<string, LiveBytes | JobtailError>([...texts, ...errors]), refused };
  }

  overlapStart(lastBytes: Buffer): number {
    const bytes = lastBytes.subarray(-UNCUT_BYTES);
    const skipped = lastBytes.length - bytes.length;
    const shown = shownFrom(bytes);
    // Fewer than half of the bytes prove too little: the response shows whether anything changed, and then raw bytes decide.
    if (2 * (bytes.length - shown) >= bytes.length) return skipped + shown;
    const whole = bytes.findIndex((_, at) => at < shown && shownWidth(bytes, at) > 0);
    return skipped + (whole < 0 ? placeWithoutMark(bytes) : whole);
  }

  #read(wanted: readonly PartRequest[], { remote, signal }: PollCalls, isFirst: boolean): Promise<PartBatch> {
    return this.#batches.read(remote, { wanted, isFirst }, signal);
  }

  #partRequest({ taskId, file, from, known, isThorough }: BytesRequest): PartRequest {
    const { longBacklogBytes = LONG_BACKLOG_BYTES } = this.#options;
    const isBacklog = from === 0 && known === 0 && !isThorough;
    const mayBeCut = isBacklog && this.#memories.get(keyText({ taskId, file }))?.wantsWholeText !== true;
    return { taskId, file, offset: from, ...(mayBeCut && { enoughBytes: longBacklogBytes }) };
  }

  #textOf(part: Part, request: BytesRequest, calls: PollCalls): Promise<TextBytes> {
    const { capabilities, direct } = this.#options;
    const name = keyText(request);
    const memory = () => {
      const found = this.#memories.get(name) ?? { path: undefined, isForDirect: false, wantsWholeText: false };
      this.#memories.set(name, found);
      return found;
    };
    const { taskId, file, listedName } = request;
    const textFrom = async (offset: number) => {
      const batch = await this.#read([{ taskId, file, offset }], calls, false);
      return batch.parts.get(name);
    };
    const shared = { jobId: this.#jobId, calls, capabilities, direct, decoding: this.#decoding, listedName, textFrom };
    return TextBytes.of(part, request, this.#decoding.server !== 'utf-8', (text) => ({
      download: (begin) => new RawText({ ...shared, text, memory: memory() }).download(begin),
    }));
  }
}

const needsNoMore = ({ sameAs }: BytesRequest, text: TextBytes | undefined) =>
  text === undefined || (sameAs !== undefined && text.sameness === sameAs);
