/** A client that has measured slow responses: it requests gzip. */
import { Compression, MEASURED_BYTES, MEASUREMENTS, SLOW_RATE } from '../../src/remote/http/compression.ts';

export function wantedCompression(): Compression {
  const compression = new Compression();
  const measure = compression.measuring();
  for (let at = 0; at < MEASUREMENTS; at += 1) measure(MEASURED_BYTES, (MEASURED_BYTES / SLOW_RATE) * 2000);
  return compression;
}
