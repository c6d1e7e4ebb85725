/** Proves all mirrors of a job: each listed file is downloaded once, for all mirrors whose source it may be. */
import fs from 'node:fs/promises';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { inSlices } from '../../slices.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { fileCalls } from '../../system/files.ts';
import { namesThatMayBe } from '../live/append/raw-bytes.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import { HEAD_BYTES, headOf } from '../results/place/temporary-files.ts';
import {
  type Compared,
  Comparison,
  compareWith,
  type DownloadOptions,
  type LocalFile,
  notRegular,
  type Proof,
} from './comparison.ts';

export interface LiveProof {
  readonly proof: Proof;
  /** The listed name of its source; null if several listed files have the bytes of the mirror. */
  readonly listedName: string | null;
}

interface MirrorProofOptions extends DownloadOptions {
  readonly mirrorDirectory: string;
  readonly listed: readonly string[];
  /** Whether a listed name with a matching end may be this live file, without its bytes. */
  readonly mayBe: (name: string, row: LiveFileRow) => boolean;
}

/** After so many failed downloads in a row, the service is the cause. */
const MAX_FAILURES = 3;

/**
 * Compares live mirrors of a job with the listed files that may be their sources: the recorded one, or all names with
 * the same end. Returns the results in the order of `rows`; a failure of one mirror is its result. Rejects if the
 * service fails.
 */
export async function proveMirrors(
  rows: readonly LiveFileRow[],
  options: MirrorProofOptions,
): Promise<(LiveProof | JobtailError)[]> {
  const opened: (Candidate | LiveProof | JobtailError)[] = [];
  for (const row of rows) opened.push(await openMirror(row, mirrorPath(options.mirrorDirectory, row.jobId, row)));
  const candidates = opened.filter((one) => one instanceof Candidate);
  const groups = await groupsByName(candidates, options);
  let failuresInARow = 0;
  for await (const name of inSlices(groups.keys())) {
    const compared = (groups.get(name) ?? []).flat().filter((one) => one.needs(name) && options.mayBe(name, one.row));
    const pairs = compared.map((candidate) => ({ candidate, comparison: candidate.comparison() }));
    if (pairs.length === 0) continue;
    const comparisons = pairs.map(({ comparison }) => comparison);
    try {
      const result = await compareWith(name, comparisons, options);
      for (const { candidate, comparison } of pairs) candidate.compared(name, comparison, result);
      failuresInARow = 0;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      const { ofOneFile } = error.policy;
      failuresInARow += 1;
      if (ofOneFile === 'no' || (ofOneFile === 'perhaps' && failuresInARow === MAX_FAILURES)) throw error;
      for (const { candidate } of pairs) candidate.failed(error);
    }
  }
  return opened.map((one) => (one instanceof Candidate ? one.outcome() : one));
}

async function groupsByName(
  candidates: readonly Candidate[],
  { listed, mayBe }: MirrorProofOptions,
): Promise<Map<string, Candidate[][]>> {
  const byPath = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const relativePath = candidate.row.relativePath ?? '';
    byPath.set(relativePath, [...(byPath.get(relativePath) ?? []), candidate]);
  }
  const byName = new Map<string, Candidate[][]>(listed.map((name) => [name, []]));
  for (const [relativePath, group] of byPath) {
    const names = new Set(await namesThatMayBe(listed, relativePath));
    for (const name of names) byName.get(name)?.push(group);
    for (const candidate of group) candidate.fits(names, mayBe);
  }
  return byName;
}

/** The mirror at `file`; or its result, if that does not depend on the listed files. */
async function openMirror(row: LiveFileRow, file: string): Promise<Candidate | LiveProof | JobtailError> {
  try {
    const bytes = await lengthOf(file);
    if (bytes < row.position && row.rotation === null)
      return unproven(bytes, `${row.position - bytes} of its bytes are gone: ${row.position} were mirrored`);
    if (bytes === 0) return { proof: { outcome: 'equal', bytes, remoteBytes: 0 }, listedName: null };
    const head = await headOf(fileCalls(true), file, HEAD_BYTES);
    return head === undefined ? unproven(bytes, notRegular(file)) : new Candidate(row, file, { bytes, head });
  } catch (thrown) {
    return asJobtailError(thrown);
  }
}

class Candidate {
  readonly row: LiveFileRow;
  readonly #file: string;
  readonly #local: LocalFile;
  #source: string | undefined;
  #isOnly = false;
  #first: LiveProof | undefined;
  readonly #equal: LiveProof[] = [];
  #whole: LiveProof | undefined;
  #failure: JobtailError | undefined;

  constructor(row: LiveFileRow, file: string, local: LocalFile) {
    this.row = row;
    this.#file = file;
    this.#local = local;
  }

  fits(names: ReadonlySet<string>, mayBe: MirrorProofOptions['mayBe']): void {
    const { listedName } = this.row;
    if (listedName !== null && names.has(listedName) && mayBe(listedName, this.row)) this.#source = listedName;
    this.#isOnly = names.size === 1 || this.#source !== undefined;
  }

  /** Whether a listed file can still change the result: not after two equal files, one of them complete. */
  needs(name: string): boolean {
    if (this.#whole !== undefined && this.#equal.length > 1) return false;
    return this.#source === undefined || this.#source === name;
  }

  comparison(): Comparison {
    return new Comparison(this.#file, !this.#isOnly, this.#local);
  }

  compared(listedName: string, comparison: Comparison, result: Compared): void {
    if (comparison.failure !== undefined) {
      this.failed(comparison.failure);
      return;
    }
    const proof = comparison.proof(result);
    const found = { proof, listedName };
    this.#first ??= found;
    if (proof.outcome !== 'equal') return;
    this.#equal.push(found);
    if (proof.remoteBytes === proof.bytes) this.#whole ??= found;
  }

  failed(failure: JobtailError): void {
    this.#failure ??= failure;
  }

  outcome(): LiveProof | JobtailError {
    if (this.#failure !== undefined && this.#whole === undefined) return this.#failure;
    // Of several files that start like the mirror, one that also ends like it is the best proof.
    const best = this.#whole ?? this.#equal[0];
    if (best === undefined) return this.#first ?? unproven(this.#local.bytes, 'the service lists no file that fits');
    return this.#failure === undefined && this.#equal.length === 1 ? best : { ...best, listedName: null };
  }
}

function unproven(bytes: number, reason: string): LiveProof {
  return { proof: { outcome: 'unproven', bytes, reason }, listedName: null };
}

async function lengthOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
