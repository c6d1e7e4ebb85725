/** Answers of the service, ready to be sent: any size out of one block of bytes that is sent again and again. */
import { createCipheriv, createHash } from 'node:crypto';
import type { Operation } from '../../src/operations.ts';

export const NAMESPACE = 'http://bench.example.org/';
export const JOB_ID = '501';
export const TASK_ID = '9001';

/** A multiple of 3, so that its base64 has no padding. Sizes of result files are multiples of it. */
export const RESULT_BLOCK_BYTES = 1024 * 1024 * 3;
/** A multiple of the 1,024 bytes in which the service decodes. Lengths of the log are multiples of it. */
export const LOG_BLOCK_BYTES = 1024 * 1024 * 2;

/** A body: what stands before, a block so many times, what stands after. */
export interface Answer {
  readonly before: Buffer;
  readonly block: Buffer;
  readonly times: number;
  readonly after: Buffer;
}

const SOAP = 'http://schemas.xmlsoap.org/soap/envelope/';
const TYPES = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"';
const START = `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${SOAP}" ${TYPES}><soap:Body>`;
const NOTHING = Buffer.alloc(0);

/** Opening and closing tags around the content of a response. */
export function around(operation: Operation, ...names: string[]): { before: string; after: string } {
  const open = names.map((name) => `<${name}>`).join('');
  const close = names
    .toReversed()
    .map((name) => `</${name}>`)
    .join('');
  const response = `${operation}Response`;
  return {
    before: `${START}<${response} xmlns="${NAMESPACE}">${open}`,
    after: `${close}</${response}></soap:Body></soap:Envelope>`,
  };
}

export function small(operation: Operation, content: string): Answer {
  const { before, after } = around(operation);
  return { before: Buffer.from(before + content + after), block: NOTHING, times: 0, after: NOTHING };
}

/** The bytes of every result file, again and again: random ones, the same in every process. */
const resultBlock = createCipheriv('aes-128-ctr', 'one key for them', Buffer.alloc(16)).update(
  Buffer.alloc(RESULT_BLOCK_BYTES),
);
const encodedBlock = Buffer.from(resultBlock.toString('base64'));

const { before: beforeResult, after: afterResult } = around('DownloadFileFromCluster', 'DownloadFileFromClusterResult');
/** What stands before the base64 in the answer for a result file. */
export const BYTES_BEFORE_RESULT = beforeResult.length;

export function resultAnswer(bytes: number): Answer {
  return {
    before: Buffer.from(beforeResult),
    block: encodedBlock,
    times: bytes / RESULT_BLOCK_BYTES,
    after: Buffer.from(afterResult),
  };
}

/** The sha256 of a result file, in hex. */
export function resultDigest(bytes: number): string {
  const hash = createHash('sha256');
  for (let time = 0; time < bytes / RESULT_BLOCK_BYTES; time += 1) hash.update(resultBlock);
  return hash.digest('hex');
}
