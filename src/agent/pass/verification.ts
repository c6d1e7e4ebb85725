/** Holds local files against the raw bytes of the service: the proof that a mirror or a result is what it claims. */
import { JobtailError } from '../../errors.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { LiveProof } from './candidate.ts';
import { Comparison, compareWith, type DownloadOptions, type Proof, proofOf } from './comparison.ts';
import { proveMirrors } from './mirror-proofs.ts';

export type { Proof } from './comparison.ts';

/** Compares a local file with the file the service lists as `name`. */
export async function proveFile(file: string, name: string, options: DownloadOptions): Promise<Proof> {
  const comparison = new Comparison(file, false);
  await comparison.open();
  const nothing = { remoteBytes: 0 };
  const compared = comparison.reason === undefined ? await compareWith(name, [comparison], options) : nothing;
  if (comparison.failure !== undefined) throw comparison.failure;
  return proofOf(comparison, compared);
}

/** Compares a live mirror as `proveMirrors` does. */
export async function proveMirror(
  row: LiveFileRow,
  mirrorDirectory: string,
  listed: readonly string[],
  options: DownloadOptions,
): Promise<LiveProof> {
  const [proof] = await proveMirrors([row], { ...options, mirrorDirectory, listed, mayBe: () => true });
  if (proof === undefined || proof instanceof JobtailError) throw proof;
  return proof;
}
