/** Compares live mirrors of a job with the listed files that may be their sources. */
import fs from 'node:fs/promises';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { keyText } from '../../job.ts';
import { likelyPaths, namesThatMayBe, SHIFT_CAPABILITY, shiftOf } from '../../live-paths.ts';
import { partsOf } from '../../safe-names.ts';
import { slicesOf } from '../../slices.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import type { CapabilityStore } from '../ports/server.ts';
import { type DownloadOptions, type Proof, proveFile, unproven } from './comparison.ts';

export interface LiveProof {
  readonly proof: Proof;
  /** The path of its source; null if several listed files have the bytes of the mirror, or none is there. */
  readonly listedName: string | null;
}

interface MirrorProofOptions extends DownloadOptions {
  readonly mirrorDirectory: string;
  readonly capabilities: CapabilityStore;
  readonly listed: readonly string[];
  /** Live files without a text, as they do not exist; by `keyText`. */
  readonly absent: ReadonlySet<string>;
  /** Recorded sources: one is not the source of another live file. */
  readonly sources?: ReadonlySet<string | null>;
  /** How many mirrors with recorded sources are compared beside each other: more than one only if `remote` queues calls. */
  readonly beside?: number;
}

const NO_FILE = 'the service lists no file that fits';
/** Empty live files in one call: one that cannot be read makes it fail. */
const ASKED_TOGETHER = 64;
/** After so many failed downloads in a row, the service is the cause. */
const MAX_FAILURES = 3;

/**
 * Returns the results in the order of `rows`; a failure of one mirror is its result. After three in a row, it is that of
 * all others. Rejects if the service cannot be called at all.
 */
export async function proveMirrors(
  rows: readonly LiveFileRow[],
  options: MirrorProofOptions,
): Promise<(LiveProof | JobtailError)[]> {
  const proofs = new Map<LiveFileRow, LiveProof | JobtailError>();
  let failuresInARow = 0;
  let last: JobtailError | undefined;
  /** @throws JobtailError if the failure is one of the service */
  const compare: Compare = async (...file) => {
    if (last !== undefined && failuresInARow >= MAX_FAILURES) return last;
    const one = await proveFile(...file).catch(asJobtailError);
    last = one instanceof JobtailError ? one : undefined;
    const ofOneFile = last?.policy.ofOneFile ?? 'yes';
    failuresInARow = ofOneFile === 'perhaps' ? failuresInARow + 1 : 0;
    if (ofOneFile === 'no') throw one;
    return one;
  };
  let shift = options.capabilities.get(SHIFT_CAPABILITY);
  const prove = async (row: LiveFileRow) => {
    const one = await proveMirror(row, shift, compare, options);
    if ('proof' in one && isSource(one)) shift = shiftOf(row, one.listedName) ?? shift;
    proofs.set(row, one);
  };
  // Beside each other if their sources are recorded; otherwise, each may show where the next one is.
  const isRecorded = ({ listedName }: LiveFileRow) => listedName !== null;
  const groups = [
    ...slicesOf(rows.filter(isRecorded), options.beside ?? 1),
    ...slicesOf(
      rows.filter((row) => !isRecorded(row)),
      1,
    ),
  ];
  for (const group of groups) {
    const ends = await Promise.allSettled(group.map(prove));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
  return rows.flatMap((row) => proofs.get(row) ?? []);
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
  const { mirrorDirectory, listed, absent, sources, capabilities } = options;
  const file = mirrorPath(mirrorDirectory, row.jobId, row);
  const bytes = await lengthOf(file).catch(asJobtailError);
  if (bytes instanceof JobtailError) return bytes;
  if (bytes < row.position && row.rotation === null)
    return without(unproven(`${row.position - bytes} of its bytes are gone: ${row.position} were mirrored`, bytes));
  if (bytes === 0 && absent.has(keyText(row))) return without({ outcome: 'equal', bytes, remoteBytes: 0 });
  const fitting = await namesThatMayBe(listed, row.relativePath);
  const likely = likelyPaths(row, shift ?? '0');
  const atKnownPath = fittingPath(row, capabilities.get(SHIFT_CAPABILITY), fitting);
  if (bytes === 0) {
    const paths = atKnownPath.length > 0 ? atKnownPath : [...likely, ...fitting];
    return await proveEmpty(file, new Set(paths), compare, options);
  }
  const recorded = fitting.filter((name) => name === row.listedName);
  const known = recorded.length > 0 ? recorded : atKnownPath;
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
  if (best !== undefined) return equal.length > 1 ? without(best.proof) : best;
  const isListed = known.length > 0 || sure.length > 0;
  const unlisted = isListed ? undefined : await proveUnlisted(file, likely, compare, options);
  return unlisted ?? first ?? without(unproven(NO_FILE, bytes));
}

/** Of files that begin alike, the empty one; the others are compared to their first byte only. */
async function proveEmpty(
  file: string,
  paths: ReadonlySet<string>,
  compare: Compare,
  options: MirrorProofOptions,
): Promise<LiveProof | JobtailError> {
  let first: LiveProof | JobtailError | undefined;
  let refused: LiveProof | undefined;
  for (const listedName of paths) {
    const proof = await compare(file, listedName, options, true);
    const one = proof instanceof JobtailError ? proof : { proof, listedName };
    if ('proof' in one && isWhole(one)) return one;
    if (!('proof' in one) || one.proof.outcome === 'equal') first ??= one;
    else refused ??= one.proof.outcome === 'unproven' && one.proof.inPlace === undefined ? one : undefined;
  }
  return first ?? refused ?? without(unproven(NO_FILE));
}

/** Some files are never listed: one at a likely path, as that of the mirror was filled, is its source if it is equal. */
async function proveUnlisted(
  file: string,
  paths: readonly string[],
  compare: Compare,
  options: MirrorProofOptions,
): Promise<LiveProof | JobtailError | undefined> {
  for (const listedName of paths) {
    const proof = await compare(file, listedName, options, true);
    if (proof instanceof JobtailError) return proof;
    if (proof.outcome === 'equal') return { proof, listedName };
  }
  return undefined;
}

/** The live files without an entry in a response: they do not exist. Empty mirrors are compared by that alone. */
export async function absentFiles(rows: readonly LiveFileRow[], { remote, jobId, signal }: DownloadOptions) {
  const absent = new Set<string>();
  const empty = rows.filter(({ position }) => position === 0);
  for (const some of slicesOf(empty, ASKED_TOGETHER)) {
    try {
      const wanted = some.map(({ taskId, file }) => ({ taskId, file, offset: 0, enoughBytes: 1 }));
      const { parts, beginning } = await remote.readParts(jobId, wanted, signal);
      for (const { content } of parts) await content.release();
      await beginning?.release();
      const found = new Set(parts.map(keyText));
      // A cut response does not name the file whose text it was.
      if (beginning === undefined) for (const row of some) if (!found.has(keyText(row))) absent.add(keyText(row));
    } catch (thrown) {
      // One of them, or their number, may be the cause.
      const { policy } = asJobtailError(thrown);
      if (policy.ofOneFile === 'no' && !policy.isDivisible) throw thrown;
    }
  }
  return absent;
}

/** The name at the likeliest path, if the number of the task is that of its directory plus `shift`. */
function fittingPath(row: LiveFileRow, shift: string | undefined, names: readonly string[]): string[] {
  const [likely = ''] = shift === undefined ? [] : likelyPaths(row, shift);
  return names.filter((name) => partsOf(name).join('/') === partsOf(likely).join('/'));
}

/** Whether a proof shows which listed file is the source: all empty files are alike. */
export const isSource = (one: LiveProof): one is LiveProof & { readonly listedName: string } =>
  one.listedName !== null && one.proof.outcome === 'equal' && one.proof.bytes > 0;

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
