/** The proof of all mirrors of a job at a time: each listed file is downloaded once, for all mirrors that it may be. */
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { inSlices } from '../../slices.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { namesThatMayBe } from '../live/append/listed-files.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import { Candidate, type LiveProof } from './candidate.ts';
import { compareWith, type DownloadOptions } from './comparison.ts';

export interface MirrorProofOptions extends DownloadOptions {
  readonly mirrorDirectory: string;
  readonly listed: readonly string[];
  /** Whether a listed name that fits may be this live file, as far as is known without its bytes. */
  readonly mayBe: (name: string, row: LiveFileRow) => boolean;
}

/** So many downloads in a row that fail: it is the service. */
const MOST_FAILURES = 3;

/**
 * Compares live mirrors of a job with the listed files that are their sources: of each the one that is known to be it, or
 * those whose beginning it is. A listed file is downloaded once, for all mirrors that it may be. In the order of `rows`;
 * what kept one mirror from being proven stands in its place. Rejects if the service is not to be had.
 */
export async function proveMirrors(
  rows: readonly LiveFileRow[],
  options: MirrorProofOptions,
): Promise<(LiveProof | JobtailError)[]> {
  const candidates: Candidate[] = [];
  for (const row of rows) candidates.push(await Candidate.of(row, mirrorPath(options.mirrorDirectory, row.jobId, row)));
  const groups = await groupsByName(candidates, options);
  let failuresInARow = 0;
  for await (const name of inSlices(groups.keys())) {
    const wanting = (groups.get(name) ?? []).flat().filter((one) => one.wants(name) && options.mayBe(name, one.row));
    const held = wanting.map((candidate) => ({ candidate, comparison: candidate.comparison() }));
    if (held.length === 0) continue;
    const comparisons = held.map(({ comparison }) => comparison);
    try {
      const compared = await compareWith(name, comparisons, options);
      for (const { candidate, comparison } of held) candidate.found(name, comparison, compared);
      failuresInARow = 0;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      const { ofOneFile } = error.policy;
      failuresInARow += 1;
      if (ofOneFile === 'no' || (ofOneFile === 'perhaps' && failuresInARow === MOST_FAILURES)) throw error;
      for (const { candidate } of held) candidate.failed(error);
    }
  }
  return candidates.map((candidate) => candidate.outcome());
}

/** The mirrors that each listed name may be by its end; a mirror is told of what is known of its source. */
async function groupsByName(
  candidates: readonly Candidate[],
  { listed, mayBe }: Pick<MirrorProofOptions, 'listed' | 'mayBe'>,
): Promise<Map<string, Candidate[][]>> {
  const byPath = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const relativePath = candidate.row.relativePath ?? '';
    const group = byPath.get(relativePath) ?? [];
    group.push(candidate);
    byPath.set(relativePath, group);
  }
  // In the order of the listing.
  const byName = new Map<string, Candidate[][]>(listed.map((name) => [name, []]));
  for (const [relativePath, group] of byPath) {
    const names = new Set(await namesThatMayBe(listed, relativePath));
    for (const name of names) byName.get(name)?.push(group);
    for (const candidate of group) candidate.fits(names, mayBe);
  }
  return byName;
}
