/** Compares live mirrors of a job with the listed files that may be their sources. */
import fs from 'node:fs/promises';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { partsOf } from '../../safe-names.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { likelyPaths, namesThatMayBe, SHIFT_CAPABILITY, shiftOf } from '../live/append/raw-bytes.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import type { CapabilityStore } from '../ports/server.ts';
import { type DownloadOptions, type Proof, proveFile, unproven } from './comparison.ts';

export interface LiveProof {
  readonly proof: Proof;
  /** The listed name of its source; null if several listed files have the bytes of the mirror. */
  readonly listedName: string | null;
}

interface MirrorProofOptions extends DownloadOptions {
  readonly mirrorDirectory: string;
  readonly capabilities: CapabilityStore;
  readonly listed: readonly string[];
  /** Recorded sources: one is not the source of another live file. */
  readonly sources?: ReadonlySet<string | null>;
}

/** After so many failed downloads in a row, the service is the cause. */
const MAX_FAILURES = 3;

/** Returns the results in the order of `rows`; a failure of one mirror is its result. Rejects if the service fails. */
export async function proveMirrors(
  rows: readonly LiveFileRow[],
  options: MirrorProofOptions,
): Promise<(LiveProof | JobtailError)[]> {
  const proofs: (LiveProof | JobtailError)[] = [];
  let failuresInARow = 0;
  /** @throws JobtailError if the failure is one of the service */
  const compare: Compare = async (...file) => {
    const one = await proveFile(...file).catch(asJobtailError);
    const ofOneFile = one instanceof JobtailError ? one.policy.ofOneFile : 'yes';
    failuresInARow = ofOneFile === 'perhaps' ? failuresInARow + 1 : 0;
    if (ofOneFile === 'no' || failuresInARow === MAX_FAILURES) throw one;
    return one;
  };
  let shift = options.capabilities.get(SHIFT_CAPABILITY);
  for (const row of rows) {
    const one = await proveMirror(row, shift, compare, options);
    if ('listedName' in one && one.listedName !== null) shift = shiftOf(row, one.listedName) ?? shift;
    proofs.push(one);
  }
  return proofs;
}

type Compare = (...file: Parameters<typeof proveFile>) => Promise<Proof | JobtailError>;

/**
 * A recorded source decides, or the file at a known path. Otherwise, the file at the likeliest path is enough if it is
 * equal, or all names with the same end are compared, because several may be equal. A name that cannot be downloaded may
 * be the source, too.
 */
async function proveMirror(
  row: LiveFileRow,
  shift: string | undefined,
  compare: Compare,
  options: MirrorProofOptions,
): Promise<LiveProof | JobtailError> {
  const { mirrorDirectory, listed, sources, capabilities } = options;
  const file = mirrorPath(mirrorDirectory, row.jobId, row);
  const bytes = await lengthOf(file).catch(asJobtailError);
  if (bytes instanceof JobtailError) return bytes;
  if (bytes < row.position && row.rotation === null)
    return without(unproven(bytes, `${row.position - bytes} of its bytes are gone: ${row.position} were mirrored`));
  if (bytes === 0) return without({ outcome: 'equal', bytes, remoteBytes: 0 });
  const fitting = await namesThatMayBe(listed, row.relativePath);
  const recorded = fitting.filter((name) => name === row.listedName);
  const known = recorded.length > 0 ? recorded : fittingPath(row, capabilities.get(SHIFT_CAPABILITY), fitting);
  const names = known.length > 0 ? known : fitting.filter((name) => sources?.has(name) !== true);
  const sure = fittingPath(row, shift ?? '0', names);
  let first: LiveProof | undefined;
  let failure: JobtailError | undefined;
  const equal: LiveProof[] = [];
  for (const listedName of new Set([...sure, ...names])) {
    const isSure = sure.includes(listedName) || names.length === 1;
    const proof = await compare(file, listedName, options, !isSure);
    if (proof instanceof JobtailError) failure ??= proof;
    else {
      const one = { proof, listedName };
      if (proof.outcome === 'equal' && isSure) return one;
      if (proof.outcome === 'equal') equal.push(one);
      first ??= one;
    }
    // Two possible sources, one of them complete: the others change nothing.
    if ((equal.length > 1 || failure !== undefined) && equal.some(isWhole)) break;
  }
  // Of several files that start like the mirror, one that also ends like it is the best proof.
  const whole = equal.find(isWhole);
  if (failure !== undefined) return whole === undefined ? failure : without(whole.proof);
  const best = whole ?? equal[0];
  if (best === undefined) return first ?? without(unproven(bytes, 'the service lists no file that fits'));
  return equal.length > 1 ? without(best.proof) : best;
}

/** The name at the likeliest path, if the number of the task is that of its directory plus `shift`. */
function fittingPath(row: LiveFileRow, shift: string | undefined, names: readonly string[]): string[] {
  const [likely = ''] = shift === undefined ? [] : likelyPaths(row, shift);
  return names.filter((name) => partsOf(name).join('/') === partsOf(likely).join('/'));
}

const without = (proof: Proof): LiveProof => ({ proof, listedName: null });

const isWhole = ({ proof }: LiveProof) => proof.outcome === 'equal' && proof.remoteBytes === proof.bytes;

async function lengthOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
