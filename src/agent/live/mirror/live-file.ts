/**
 * One live file while it is polled: its committed row, its mirror, and how much of the mirror is undisputed.
 *
 * Bytes are appended, flushed, then committed. The uncommitted tail was never promised, and is compared with the remote
 * file like all other bytes.
 *
 *   0 ............ row.position ............ #compared ............ length
 *     committed: promised     appended or compared     left by a kill, not compared yet
 */
import { type KeptMismatch, type Mismatch, type MismatchKind, withMismatch } from '../../../mismatch.ts';
import type { LiveFileRow } from '../../../store/rows.ts';
import type { ShownBy } from '../debounce.ts';
import type { FileMemory } from '../memory.ts';
import { beginGeneration } from './generations.ts';
import type { LiveFileOptions, Mirror } from './mirror.ts';

/**
 * intact: the mirror is as committed. modified: another process changed it, so a mismatch is mended from the remote
 * file. unknown: the state was lost, so either side may be right, and the old bytes are rotated.
 */
export type Integrity = 'intact' | 'modified' | 'unknown';

export class LiveFile {
  readonly memory: FileMemory;
  readonly overlapBytes: number;
  readonly #options: LiveFileOptions;
  readonly #mirror: Mirror;
  readonly #reported = new Set<MismatchKind>();
  /** The committed row, with columns that the next commit writes: some before a write, others after the poll. */
  #row: LiveFileRow;
  #changed = false;
  #integrity: Integrity;
  /** The end of the bytes that this agent committed, compared or appended. */
  #compared: number;

  constructor(row: LiveFileRow, mirror: Mirror, integrity: Integrity, memory: FileMemory, options: LiveFileOptions) {
    this.#row = row;
    this.#mirror = mirror;
    this.#integrity = integrity;
    this.memory = memory;
    this.overlapBytes = options.overlapBytes;
    this.#options = options;
    this.#compared = Math.min(row.position, mirror.length);
  }

  get row(): LiveFileRow {
    return this.#row;
  }

  /** Whether there is anything to commit. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Length of the mirror, in bytes: the next offset of the remote file. */
  get length(): number {
    return this.#mirror.length;
  }

  /** Bytes appended since it was opened. */
  get appended(): number {
    return this.#mirror.appended;
  }

  /** The end of the bytes that were committed and are intact; a poll compares only the last of them again. */
  get undisputed(): number {
    return this.#integrity === 'intact' ? Math.min(this.row.position, this.length) : 0;
  }

  get integrity(): Integrity {
    return this.#integrity;
  }

  /** The bytes [start, end) of the mirror. */
  read(start: number, end: number): Promise<Buffer> {
    return this.#mirror.read(start, Math.max(start, Math.min(end, this.length)));
  }

  /** Records that the mirror is the beginning of the remote file. */
  markCompared(by: ShownBy): void {
    if (this.length < this.row.position) {
      const reason = `the mirror had ${this.length} of the ${this.row.position} bytes that were committed`;
      this.#report({ kind: 'mirror-damaged', at: this.length, reason });
    }
    if (this.#integrity !== 'intact' || this.#compared !== this.length) this.#changed = true;
    this.#integrity = 'intact';
    this.#compared = this.length;
    this.memory.symptoms.noteSame(by);
  }

  /** Records the paths of the file on the server. */
  note(facts: { readonly relativePath?: string | null; readonly listedName?: string | null }): void {
    const { relativePath, listedName } = this.#row;
    this.#set(facts);
    if (this.#row.relativePath !== relativePath || this.#row.listedName !== listedName) this.#changed = true;
  }

  /** Requests a commit, although nothing was written. */
  markChanged(): void {
    this.#changed = true;
  }

  async append(bytes: Buffer): Promise<void> {
    this.#changed = true;
    // What comes again after a cut was not compared.
    if (this.length < (this.#row.verified ?? 0)) this.#set({ verified: null });
    try {
      await this.#mirror.append(bytes);
    } finally {
      this.#compared = this.length;
    }
    await this.#options.checkpoint('append:written');
    if (this.#mirror.wantsCommit) await this.commitAppended();
    else this.#mirror.flushAhead();
  }

  /** Flushes and commits what was appended so far. */
  async commitAppended(): Promise<void> {
    if (this.#integrity !== 'intact' || this.#compared <= this.row.position) return;
    await this.flushToRow();
    this.#commit({ grownAt: this.#options.now() });
  }

  /** Truncates the mirror to `length`; only for bytes that were never promised, or that another process changed. */
  async cut(length: number, reason: string): Promise<void> {
    this.#report({ kind: 'mirror-damaged', at: length, reason });
    this.#changed = true;
    // A smaller offset is committed before the cut; until the rest is compared, the mirror counts as modified.
    if (length < this.row.position) this.#commit({ position: length, checksum: null, modifiedNs: null });
    await this.#mirror.cut(length);
    this.#compared = Math.min(this.#compared, length);
  }

  /** Rotates the mirror to `.1` and starts the next generation at 0. */
  async startGeneration(found: Mismatch): Promise<void> {
    this.#changed = true;
    const flushed = await this.flushToRow();
    const kept = this.#kept(found, flushed.generation + 1);
    const row = { ...flushed, mismatches: withMismatch(flushed.mismatches, kept) };
    // If a step fails, the row is as the last step left it, and nothing is promised about the mirror.
    this.#integrity = 'modified';
    const commitNow = (begun: LiveFileRow) => this.#commit(begun);
    this.#set(await beginGeneration(row, this.#mirror, { ...this.#options, commitNow }));
    this.#compared = 0;
    this.#integrity = 'intact';
    this.#options.onMismatch?.(this.row, kept);
  }

  /** Flushes the mirror and advances the row to it, unless the mirror is not intact: then the offset stays. */
  async flushToRow(): Promise<LiveFileRow> {
    if (!this.changed || this.#integrity !== 'intact') return this.row;
    await this.#options.checkpoint('flush:begin');
    await this.#flush();
    const position = this.#compared;
    const { checksum: value, position: committed } = this.row;
    // Continued from that of the committed bytes.
    const known = value === null || committed > position ? undefined : { position: committed, value };
    const checksum = await this.#mirror.checksum(position, known);
    const { inode, modifiedNs } = await this.#mirror.stat();
    this.#set({ position, checksum, inode, modifiedNs });
    await this.#options.checkpoint('flush:end');
    return this.row;
  }

  /** Stores and reports a mismatch, once for each kind and poll. */
  #report(found: Mismatch): void {
    if (this.#reported.has(found.kind)) return;
    this.#reported.add(found.kind);
    const kept = this.#kept(found, this.row.generation);
    this.#set({ mismatches: withMismatch(this.row.mismatches, kept) });
    this.#options.onMismatch?.(this.row, kept);
  }

  #kept(found: Mismatch, generation: number): KeptMismatch {
    return { ...found, generation, seenAt: this.#options.now() };
  }

  close(): Promise<void> {
    return this.#mirror.close();
  }

  /** Sets columns for the next commit. */
  #set(columns: Partial<LiveFileRow>): void {
    this.#row = { ...this.#row, ...columns };
  }

  #commit(columns: Partial<LiveFileRow> = {}): void {
    this.#set(columns);
    this.#options.commitNow(this.#row);
  }

  /** After a failed flush, lost bytes may be marked as clean: uncommitted ones are cut, and requested again. */
  async #flush(): Promise<void> {
    try {
      await this.#mirror.flush();
    } catch (error) {
      this.#compared = Math.min(this.row.position, this.length);
      await this.#mirror.cut(this.#compared);
      const { inode, modifiedNs } = await this.#mirror.stat();
      this.#set({ inode, modifiedNs });
      throw error;
    }
  }
}
