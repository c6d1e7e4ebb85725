/** Holds a local file against the raw bytes of the service: the proof that a result is what it claims. */
import { Comparison, compareWith, type DownloadOptions, type Proof, proofOf } from './comparison.ts';

/** Compares a local file with the file the service lists as `name`. */
export async function proveFile(file: string, name: string, options: DownloadOptions): Promise<Proof> {
  const comparison = new Comparison(file, false);
  await comparison.open();
  const nothing = { remoteBytes: 0 };
  const compared = comparison.reason === undefined ? await compareWith(name, [comparison], options) : nothing;
  if (comparison.failure !== undefined) throw comparison.failure;
  return proofOf(comparison, compared);
}
