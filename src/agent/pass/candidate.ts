/** A live mirror whose source is among the listed files, and what was found of it there. */
import fs from 'node:fs/promises';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { fileCalls } from '../../system/files.ts';
import { HEAD_BYTES, headOf } from '../results/place/digest.ts';
import { type Compared, Comparison, type Looked, notRegular, type Proof, proofOf } from './comparison.ts';

export interface LiveProof {
  readonly proof: Proof;
  /** The listed name it was held against; null if it is not the only one that has the bytes of the mirror. */
  readonly listedName: string | null;
}

/** What is proven of one mirror, while listed files are held against it one after the other. */
export class Candidate {
  readonly row: LiveFileRow;
  readonly #file: string;
  readonly #looked: Looked;
  /** What holds whatever the listed files are. */
  readonly #settled: LiveProof | JobtailError | undefined;
  /** The listed name that is known to be its source, if it is listed. */
  #source: string | undefined;
  /** At most one listed file may be it. */
  #isOnly = false;
  #first: LiveProof | undefined;
  #equal: LiveProof | undefined;
  /** Equal to its last byte. */
  #whole: LiveProof | undefined;
  #equals = 0;
  #failure: JobtailError | undefined;

  private constructor(row: LiveFileRow, file: string, looked: Looked, settled?: LiveProof | JobtailError) {
    this.row = row;
    this.#file = file;
    this.#looked = looked;
    this.#settled = settled;
  }

  /** The mirror as it stands at `file`. */
  static async of(row: LiveFileRow, file: string): Promise<Candidate> {
    const nothing = { bytes: 0, head: Buffer.alloc(0) };
    try {
      const bytes = await lengthOf(file);
      const reason = `${row.position - bytes} of its bytes are gone: ${row.position} were mirrored`;
      if (bytes < row.position && row.rotation === null)
        return new Candidate(row, file, nothing, unproven(bytes, reason));
      const empty: LiveProof = { proof: { outcome: 'equal', bytes, remoteBytes: 0 }, listedName: null };
      if (bytes === 0) return new Candidate(row, file, nothing, empty);
      const head = await headOf(fileCalls(true), file, HEAD_BYTES);
      if (head === undefined) return new Candidate(row, file, nothing, unproven(bytes, notRegular(file)));
      return new Candidate(row, file, { bytes, head });
    } catch (thrown) {
      return new Candidate(row, file, nothing, asJobtailError(thrown));
    }
  }

  /** Takes in the listed names that end as its path does. */
  fits(names: ReadonlySet<string>, mayBe: (name: string, row: LiveFileRow) => boolean): void {
    const { listedName } = this.row;
    if (listedName !== null && names.has(listedName) && mayBe(listedName, this.row)) this.#source = listedName;
    this.#isOnly = names.size === 1 || this.#source !== undefined;
  }

  /** Whether a name that fits can still change the outcome: two equal files, one of them to the end, are all there is. */
  wants(name: string): boolean {
    if (this.#settled !== undefined || (this.#whole !== undefined && this.#equals > 1)) return false;
    return this.#source === undefined || this.#source === name;
  }

  comparison(): Comparison {
    return new Comparison(this.#file, !this.#isOnly, this.#looked);
  }

  /** Takes in what came of holding it against a listed file. */
  found(listedName: string, comparison: Comparison, compared: Compared): void {
    if (comparison.failure !== undefined) {
      this.failed(comparison.failure);
      return;
    }
    const proof = proofOf(comparison, compared);
    const found = { proof, listedName };
    this.#first ??= found;
    if (proof.outcome !== 'equal') return;
    this.#equals += 1;
    this.#equal ??= found;
    if (proof.remoteBytes === proof.bytes) this.#whole ??= found;
  }

  /** Takes in that it could not be held against a listed file. */
  failed(failure: JobtailError): void {
    this.#failure ??= failure;
  }

  /** What is proven of it; a failure that left that open. */
  outcome(): LiveProof | JobtailError {
    if (this.#settled !== undefined) return this.#settled;
    // Several files begin like the mirror; one that also ends with it is all that can be asked for.
    const best = this.#whole ?? this.#equal;
    if (this.#failure !== undefined)
      return this.#whole === undefined ? this.#failure : { ...this.#whole, listedName: null };
    if (best !== undefined) return this.#equals === 1 ? best : { ...best, listedName: null };
    return this.#first ?? unproven(this.#looked.bytes, 'the service lists no file that fits');
  }
}

function unproven(bytes: number, reason: string): LiveProof {
  return { proof: { outcome: 'unproven', bytes, reason }, listedName: null };
}

/** A missing file is empty. */
async function lengthOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
