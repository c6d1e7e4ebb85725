/** What the service hands out of a file that does not change meanwhile. */
import { type DecodingOptions, readDecoder } from '../../simulator/operations/decoding.ts';

export interface DecodeBytesOptions extends DecodingOptions {
  /** Lengths of the reads, for short reads; the last one goes to the end. By default one read takes everything. */
  readonly readLengths?: Iterable<number>;
}

/** The text handed out for a file with `bytes` when it is asked for from `offset` on; empty if that is past the end. */
export function decodeBytes(bytes: Buffer, offset: number, options: DecodeBytesOptions = {}): string {
  const decoder = readDecoder(options);
  let position = offset;
  let text = '';
  for (const length of options.readLengths ?? []) {
    text += decoder.decode(bytes.subarray(position, position + length));
    position += length;
  }
  return text + decoder.decode(bytes.subarray(position)) + decoder.end();
}
