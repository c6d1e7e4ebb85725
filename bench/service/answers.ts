/** Answers of the service, ready to be sent: any size out of one block of bytes that is sent again and again. */
import { createCipheriv, createHash } from 'node:crypto';
import { type Protocol, WRITING } from './protocols.ts';

/** Whole lines of 76 characters of base64, and so without padding. Sizes of result files are multiples of it. */
export const RESULT_BLOCK_BYTES = 57 * 48 * 1024;
/** A multiple of the 1,024 bytes in which the service decodes. Lengths of the log are multiples of it. */
export const LOG_BLOCK_BYTES = 1024 * 1024 * 2;

/** A body: what stands before, a block so many times, what stands after. */
export interface Answer {
  readonly before: Buffer;
  readonly block: Buffer;
  readonly times: number;
  readonly after: Buffer;
}

const NOTHING = Buffer.alloc(0);

export function small(document: string): Answer {
  return { before: Buffer.from(document), block: NOTHING, times: 0, after: NOTHING };
}

/** The bytes of every result file, again and again: random ones, the same in every process. */
const resultBlock = createCipheriv('aes-128-ctr', 'one key for them', Buffer.alloc(16)).update(
  Buffer.alloc(RESULT_BLOCK_BYTES),
);
const encodedBlock = resultBlock.toString('base64');

/** The name of a result file, which says how long it is. */
export const resultName = (bytes: number) => `/${bytes}.plain`;

const blocks = { soap: blockOf('soap'), rest: blockOf('rest') };

function blockOf(protocol: Protocol): Buffer {
  return Buffer.from(WRITING[protocol].escaped(encodedBlock));
}

/** Names of small results: so many, below directories of a hundred. All of them hold the beginning of the one block. */
export const smallNames = (count: number) =>
  Array.from({ length: count }, (_, index) => `/part-${Math.floor(index / 100)}/file-${index}.small`);

export const SMALL_RESULT_BYTES = 20_000;
const smallBase64 = resultBlock.subarray(0, SMALL_RESULT_BYTES).toString('base64');

function smallAnswer(protocol: Protocol): Answer {
  const { file, escaped } = WRITING[protocol];
  return small(file.before + escaped(smallBase64) + file.after);
}
const smallAnswers = { soap: smallAnswer('soap'), rest: smallAnswer('rest') };

export function resultAnswer(name: string, protocol: Protocol): Answer {
  if (name.endsWith('.small')) return smallAnswers[protocol];
  const [, bytes] = /^\/(\d+)\.plain$/.exec(name) ?? [];
  if (bytes === undefined) throw new Error(`${name} is no result`);
  const { before, after } = WRITING[protocol].file;
  const times = Number(bytes) / RESULT_BLOCK_BYTES;
  return { before: Buffer.from(before), block: blocks[protocol], times, after: Buffer.from(after) };
}

/** Where the base64 stands in an answer by SOAP. */
export function base64In(bytes: number): { readonly start: number; readonly length: number } {
  const { before, block, times } = resultAnswer(resultName(bytes), 'soap');
  return { start: before.length, length: block.length * times };
}

/** The sha256 of a result file, in hex. */
export function resultDigest(bytes: number): string {
  const hash = createHash('sha256');
  for (let time = 0; time < bytes / RESULT_BLOCK_BYTES; time += 1) hash.update(resultBlock);
  return hash.digest('hex');
}
