/**
 * One live file while it is polled: its committed row, its mirror, and how much of the mirror is undisputed.
 *
 * Bytes are appended, flushed, then committed. `length` is that of the mirror and may be ahead of the committed
 * position. Before the first of them is appended, the row is marked with the boot of the machine, so that the next start
 * on the same boot knows what a kill left for as it was written, and promises it. What else is ahead was never promised,
 * and is compared with the remote file like everything else.
 */
import { type JobId, keyText, type LiveFileKey } from '../../../job.ts';
import type { InexactRegion, LiveFileRow } from '../../../store/rows.ts';
import { Flushing } from './flushing.ts';
import { beginGeneration, finishRotation } from './generations.ts';
import { maskRegions, overlaps, regionsBefore, withRegion } from './inexact-regions.ts';
import { type Integrity, integrityOf } from './integrity.ts';
import { FINGERPRINT_BYTES, type Mirror, type MirrorLook } from './mirror.ts';
import type { OpenMirrors } from './open-mirrors.ts';

/** Bytes appended before they are flushed and committed within one long append. */
const COMMIT_BYTES = 32 * 1024 * 1024;

export interface LiveFileOptions {
  readonly mirrors: OpenMirrors;
  /** Bytes already mirrored that each poll asks for again. */
  readonly overlapBytes: number;
  /** Old generations that are kept of a rewritten file. */
  readonly keepGenerations: number;
  /** The boot of the machine; null if it is not known, or what was written on it need not be there. */
  readonly bootId: string | null;
  /** Commits a row durably. */
  readonly commit: (row: LiveFileRow) => void;
  /** Commits a row so that a kill does not take it back, though a power loss may. */
  readonly mark: (row: LiveFileRow) => void;
  /** Called at each point where a kill could matter, by its name; tests end the work there. */
  readonly checkpoint: (step: string) => void | Promise<void>;
  /** The live files of the job whose mirrors this process has left as committed; kept by the caller from poll to poll. */
  readonly leftIntact: Set<string>;
}

export class LiveFile {
  readonly jobId: JobId;
  readonly key: LiveFileKey;
  #row: LiveFileRow;
  #length: number;
  #integrity: Integrity;
  /** How far the mirror was committed, compared or appended by this agent. */
  #compared: number;
  #changed = false;
  #appended = 0;
  readonly #mirror: Mirror;
  readonly #flushing: Flushing;
  readonly #options: LiveFileOptions;

  private constructor(row: LiveFileRow, mirror: Mirror, look: MirrorLook, options: LiveFileOptions) {
    this.jobId = row.jobId;
    this.key = { taskId: row.taskId, file: row.file };
    this.#row = { ...row, bootId: null, inexact: regionsBefore(row.inexact, look.length) };
    this.#mirror = mirror;
    this.#flushing = new Flushing(mirror, () => this.#unmark());
    this.#length = look.length;
    this.#options = options;
    this.#integrity = integrityOf(row, look, options.leftIntact.has(keyText(row)));
    this.#compared = this.committed;
  }

  /** Opens the mirror (made if it is missing), finishes a rotation that a kill interrupted, and looks for damage. */
  static async open(row: LiveFileRow, options: LiveFileOptions): Promise<LiveFile> {
    const mirror = await options.mirrors.take(row.jobId, row);
    try {
      const finished = await finishRotation(row, { mirror, keep: keptOf(row, options), ...options });
      const look = await mirror.look();
      const { inode, modifiedNs, length } = look;
      if (finished.inode !== null || length > 0) {
        const file = new LiveFile(finished, mirror, look, options);
        if (finished.bootId !== null && finished.bootId === options.bootId) await file.#promiseWritten();
        return file;
      }
      // The first bytes of a new mirror have to be known as its own, should a kill come before they are committed.
      const begun = { ...finished, inode, modifiedNs };
      options.commit(begun);
      return new LiveFile(begun, mirror, look, options);
    } catch (error) {
      await options.mirrors.giveBack(mirror, { grew: false });
      throw error;
    }
  }

  get row(): LiveFileRow {
    return this.#row;
  }

  /** Length of the mirror: the position in the remote file behind the last byte that is there. */
  get length(): number {
    return this.#length;
  }

  /** Bytes of the mirror that were committed. */
  get committed(): number {
    return Math.min(this.#row.position, this.#length);
  }

  /** Bytes of the mirror that need not be compared. */
  get undisputed(): number {
    return this.#integrity === 'intact' ? this.committed : 0;
  }

  /** Bytes already mirrored that are asked for again. */
  get overlapBytes(): number {
    return this.#options.overlapBytes;
  }

  get integrity(): Integrity {
    return this.#integrity;
  }

  /** Bytes appended since it was opened. */
  get appended(): number {
    return this.#appended;
  }

  /** Whether there is anything to commit. */
  get changed(): boolean {
    return this.#changed;
  }

  /** The bytes [start, end) of the mirror; those of inexact regions are made unknown. */
  async read(start: number, end: number): Promise<Buffer> {
    const bytes = await this.#mirror.read(start, Math.max(start, Math.min(end, this.#length)));
    return maskRegions(bytes, start, this.#row.inexact);
  }

  /** Where the inexact region ends that covers a position; undefined if none does. */
  unknownUntil(position: number): number | undefined {
    const region = this.#row.inexact.find((each) => overlaps(each, position, position + 1));
    return region && region.start + region.length;
  }

  async append(bytes: Buffer): Promise<void> {
    await this.#mark();
    this.#touch();
    try {
      await this.#mirror.write(this.#length, bytes);
    } catch (error) {
      // What fitted is there to stay.
      const look = await this.#mirror.look().catch(() => undefined);
      this.#noteAppended(Math.max(0, (look?.length ?? 0) - this.#length));
      throw error;
    }
    this.#noteAppended(bytes.length);
    await this.#options.checkpoint('append:written');
    if (this.#flushing.bytes >= COMMIT_BYTES) this.#options.commit(await this.flushToRow());
    else this.#flushing.flushAhead();
  }

  /** Appends `width` bytes that stand for ones that cannot be had; says so before they are there. */
  async appendInexact(width: number): Promise<void> {
    this.#row = { ...this.#row, inexact: withRegion(this.#row.inexact, { start: this.#length, length: width }) };
    this.#options.commit(this.#row);
    await this.append(Buffer.alloc(width, '?'));
  }

  /** Puts the raw bytes into the inexact regions, in their order. */
  async mend(pieces: readonly Buffer[]): Promise<void> {
    this.#touch();
    // A kill may leave some of them there: then the bytes are others than those that were committed, and no edit.
    this.#row = { ...this.#row, fingerprint: null };
    this.#options.commit(this.#row);
    for (const [index, { start }] of this.#row.inexact.entries())
      await this.#mirror.write(start, pieces[index] ?? Buffer.alloc(0));
    await this.#options.checkpoint('mend:written');
    await this.#flush();
    this.#row = { ...this.#row, inexact: [] };
  }

  /** Removes what stands behind `length`; only for bytes that the remote file does not have. */
  async cut(length: number): Promise<void> {
    this.#touch();
    // A promise that goes back is taken back first; until the rest is compared, the mirror counts as modified.
    if (length < this.#row.position) {
      const fingerprint = await this.#mirror.fingerprint(length);
      const inexact = regionsBefore(this.#row.inexact, length);
      this.#row = { ...this.#row, position: length, fingerprint, modifiedNs: null, bootId: null, inexact };
      this.#options.commit(this.#row);
    }
    await this.#mirror.cut(length);
    this.#flushing.removed(this.#length - length);
    this.#length = length;
    this.#compared = Math.min(this.#compared, length);
  }

  /** The mirror was held against the remote file, and is its beginning, except perhaps for the bytes `undetermined`. */
  markCompared(undetermined: readonly InexactRegion[]): void {
    this.#changed ||= this.#integrity !== 'intact' || this.#compared !== this.#length;
    if (this.#changed) {
      const inexact = [...regionsBefore(this.#row.inexact, this.undisputed), ...undetermined];
      this.#row = { ...this.#row, inexact };
    }
    this.#integrity = 'intact';
    this.#compared = this.#length;
  }

  /** From where on the fingerprint says whether the mirror is as it was committed. */
  get fingerprintStart(): number {
    return Math.max(0, this.#row.position - FINGERPRINT_BYTES);
  }

  /** Whether the bytes before the committed position are still those that were committed. */
  async hasItsFingerprint(): Promise<boolean> {
    if (this.#row.fingerprint === null) return true;
    return (await this.#mirror.fingerprint(this.#row.position)) === this.#row.fingerprint;
  }

  /** Somebody changed the mirror: it is asked for from the beginning until all of it was compared. */
  markModified(): void {
    this.#integrity = 'modified';
  }

  /** Keeps what is there as an old generation and starts the next one at 0. */
  async startGeneration(): Promise<void> {
    const { commit, checkpoint } = this.#options;
    this.#touch();
    this.#row = await beginGeneration(await this.flushToRow(), {
      mirror: this.#mirror,
      keep: keptOf(this.#row, this.#options),
      commit,
      checkpoint,
    });
    this.#length = 0;
    this.#compared = 0;
    this.#integrity = 'intact';
  }

  /** Remembers where the service says the file is. */
  note(facts: Partial<Pick<LiveFileRow, 'relativePath' | 'listedName'>>): void {
    const row = { ...this.#row, ...facts };
    if (row.relativePath === this.#row.relativePath && row.listedName === this.#row.listedName) return;
    this.#row = row;
    this.#changed = true;
  }

  /**
   * Flushes the mirror and brings the row to it. Unless the mirror is intact the position stays: nothing is promised
   * of bytes that were not compared.
   */
  async flushToRow(): Promise<LiveFileRow> {
    if (!this.#changed || this.#integrity !== 'intact') return this.#row;
    await this.#options.checkpoint('flush:begin');
    await this.#flush();
    const position = this.#compared;
    const fingerprint = await this.#mirror.fingerprint(position);
    const { inode, modifiedNs } = await this.#mirror.look();
    this.#row = { ...this.#row, position, fingerprint, inode, modifiedNs, bootId: null };
    await this.#options.checkpoint('flush:end');
    return this.#row;
  }

  /** The row was committed: from now on, whoever else touches the mirror is found out. */
  noteCommitted(): void {
    if (this.#integrity === 'intact' && this.#row.position === this.#length)
      this.#options.leftIntact.add(keyText(this.key));
  }

  /** Gives the mirror back; `mayStayOpen` if nothing failed, and it is likely to grow again. */
  async close(mayStayOpen = false): Promise<void> {
    await this.#flushing.end();
    await this.#options.mirrors.giveBack(this.#mirror, { grew: mayStayOpen && this.#appended > 0 });
  }

  /** A kill left bytes behind the position that were appended on this boot: the system has them as they were written. */
  async #promiseWritten(): Promise<void> {
    if (this.#integrity !== 'intact' || this.#length <= this.#row.position || !(await this.hasItsFingerprint())) return;
    this.#touch();
    this.#flushing.added(this.#length - this.#row.position);
    this.#compared = this.#length;
    await this.flushToRow();
  }

  /** Before anything is appended, the row has to say so: nothing stands behind its position that was not compared. */
  async #mark(): Promise<void> {
    const { bootId, mark, checkpoint } = this.#options;
    if (bootId === null || this.#row.bootId === bootId) return;
    const row = await this.flushToRow();
    await checkpoint('append:mark');
    mark({ ...row, bootId });
    this.#row = { ...row, bootId };
  }

  /** A flush failed: no start may take what is not promised for right, whatever the system still shows of it. */
  #unmark(): void {
    this.#row = { ...this.#row, bootId: null };
    this.#options.commit(this.#row);
  }

  #noteAppended(width: number): void {
    this.#length += width;
    this.#compared = this.#length;
    this.#appended += width;
    this.#flushing.added(width);
  }

  #touch(): void {
    this.#changed = true;
    this.#options.leftIntact.delete(keyText(this.key));
  }

  /**
   * The system may hold bytes for clean whose flush failed, so a second flush would prove nothing: what was not
   * promised is taken back, and written anew when it comes again.
   */
  async #flush(): Promise<void> {
    try {
      await this.#flushing.flush();
    } catch (error) {
      const flushed = Math.max(0, this.#length - this.#flushing.bytes);
      this.#compared = Math.min(this.#row.position, flushed);
      await this.#mirror.cut(this.#compared);
      const { inode, modifiedNs, length } = await this.#mirror.look();
      this.#length = length;
      this.#compared = length;
      this.#flushing.removed(this.#flushing.bytes);
      this.#row = { ...this.#row, inode, modifiedNs };
      throw error;
    }
  }
}

/** A progress file is rewritten again and again by design: its last state before is enough. */
const keptOf = (row: LiveFileRow, options: LiveFileOptions) =>
  row.file === 'progress' ? Math.min(1, options.keepGenerations) : options.keepGenerations;
