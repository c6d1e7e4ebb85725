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

/** White space in the base64 of a whole file, as servers write it: none, a line feed before it, lines of 76 characters. */
export const LAYOUTS = ['plain', 'line-feed', 'wrapped'] as const;
export type Layout = (typeof LAYOUTS)[number];

const leadOf = (layout: Layout) => (layout === 'line-feed' ? '\n' : '');

/** The name of a result file, which says how long it is and how it comes. */
export const resultName = (bytes: number, layout: Layout | 'log') => `/${bytes}.${layout}`;

/** By protocol and layout. */
const blocks = new Map<string, Buffer>();

function blockOf(protocol: Protocol, layout: Layout): Buffer {
  const name = `${protocol} ${layout}`;
  const base64 = () => (layout === 'wrapped' ? encodedBlock.replace(/.{76}/g, '$&\r\n') : encodedBlock);
  const block = blocks.get(name) ?? Buffer.from(WRITING[protocol].escaped(base64()));
  blocks.set(name, block);
  return block;
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

/** By its name; there may be directories before it. */
export const bytesOf = (name: string) => Number.parseInt(name.slice(name.lastIndexOf('/') + 1), 10);

export function resultAnswer(name: string, protocol: Protocol): Answer {
  if (name.endsWith('.small')) return smallAnswers[protocol];
  const bytes = bytesOf(name);
  const layout = LAYOUTS.find((known) => name.endsWith(resultName(bytes, known)));
  if (layout === undefined) throw new Error(`${name} is no result`);
  const { file, escaped } = WRITING[protocol];
  return {
    before: Buffer.from(file.before + escaped(leadOf(layout))),
    block: blockOf(protocol, layout),
    times: bytes / RESULT_BLOCK_BYTES,
    after: Buffer.from(file.after),
  };
}

/** Where the base64 stands in an answer by SOAP, white space included. */
export function base64In(bytes: number, layout: Layout): { readonly start: number; readonly length: number } {
  const { before, block, times } = resultAnswer(resultName(bytes, layout), 'soap');
  const start = before.length - leadOf(layout).length;
  return { start, length: before.length - start + block.length * times };
}

/** The sha256 of a result file, in hex. */
export function resultDigest(bytes: number): string {
  const hash = createHash('sha256');
  for (let time = 0; time < bytes / RESULT_BLOCK_BYTES; time += 1) hash.update(resultBlock);
  return hash.digest('hex');
}
