/**
 * One live file while it is polled: its committed row, its mirror, and how much of the mirror is undisputed.
 *
 * Bytes are appended, flushed, then committed. `length` is that of the mirror and may be ahead of the committed
 * position. What is ahead was never promised, and is compared with the remote file like everything else.
 */
import { type KeptMismatch, type Mismatch, type MismatchKind, withMismatch } from '../../../mismatch.ts';
import type { InexactRegion, LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';
import { beginGeneration, type GenerationOptions } from './generations.ts';
import { maskRegions, overlaps, regionsBefore, withRegion } from './inexact-regions.ts';
import type { LiveRow, LiveRowOptions } from './live-row.ts';
import type { Mirror } from './mirror.ts';
import type { MirrorWriter } from './mirror-writer.ts';
import type { OpenMirrors } from './open-mirrors.ts';

export interface LiveFileOptions extends LiveRowOptions, GenerationOptions {
  readonly mirrors: OpenMirrors;
  /** Bytes already mirrored that each poll asks for again. */
  readonly overlapBytes: number;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /** Called with each mismatch that was acted upon, once. */
  readonly onMismatch?: ((row: LiveFileRow, found: KeptMismatch) => void) | undefined;
}

/**
 * intact: nothing speaks against the mirror. modified: it was changed by somebody else, so a difference is mended from
 * the remote file. unknown: the state was lost, so nobody knows who is right, and the old bytes are kept.
 */
export type Integrity = 'intact' | 'modified' | 'unknown';

/** What a live file consists of, as `openLiveFile` found it. */
interface LiveFileParts {
  readonly row: LiveRow;
  readonly mirror: Mirror;
  readonly writer: MirrorWriter;
  readonly integrity: Integrity;
}

export class LiveFile {
  readonly #options: LiveFileOptions;
  readonly #row: LiveRow;
  readonly #mirror: Mirror;
  readonly #writer: MirrorWriter;
  readonly #reported = new Set<MismatchKind>();
  #integrity: Integrity;
  /** How far the mirror was committed, compared or appended by this agent. */
  #compared: number;

  constructor({ row, mirror, writer, integrity }: LiveFileParts, options: LiveFileOptions) {
    this.#options = options;
    this.#row = row;
    this.#mirror = mirror;
    this.#writer = writer;
    this.#integrity = integrity;
    this.#compared = this.committed;
  }

  get memory(): FileMemory {
    return this.#row.memory;
  }

  get row(): LiveFileRow {
    return this.#row.current;
  }

  /** Whether there is anything to commit. */
  get changed(): boolean {
    return this.#row.changed;
  }

  /** Length of the mirror: the position in the remote file behind the last byte that is there. */
  get length(): number {
    return this.#writer.length;
  }

  /** Bytes appended since it was opened. */
  get appended(): number {
    return this.#writer.appended;
  }

  /** Bytes of the mirror that were committed. */
  get committed(): number {
    return Math.min(this.row.position, this.length);
  }

  /** Bytes of the mirror that need not be compared. */
  get undisputed(): number {
    return this.#integrity === 'intact' ? this.committed : 0;
  }

  get integrity(): Integrity {
    return this.#integrity;
  }

  /** Bytes already mirrored that are asked for again. */
  get overlapBytes(): number {
    return this.#options.overlapBytes;
  }

  /** The bytes [start, end) of the mirror; those of inexact regions are made unknown. */
  async read(start: number, end: number): Promise<Buffer> {
    const bytes = await this.#mirror.read(start, Math.max(start, Math.min(end, this.length)));
    return maskRegions(bytes, start, this.row.inexact);
  }

  /** Where the inexact region ends that covers a position; undefined if none does. */
  unknownUntil(position: number): number | undefined {
    const region = this.row.inexact.find((each) => overlaps(each, position, position + 1));
    return region && region.start + region.length;
  }

  /** Whether the bytes before the committed position are still those that were committed. */
  async hasItsFingerprint(): Promise<boolean> {
    const { fingerprint, position } = this.row;
    return fingerprint === null || (await this.#mirror.fingerprint(position)) === fingerprint;
  }

  /** Somebody changed the mirror: it is asked for from the beginning until all of it was compared. */
  markModified(): void {
    this.#integrity = 'modified';
  }

  /** The mirror was held against the remote file, and is its beginning, except perhaps for the bytes `undetermined`. */
  markCompared(undetermined: readonly InexactRegion[]): void {
    if (this.length < this.row.position) {
      const reason = `the mirror had ${this.length} of the ${this.row.position} bytes that were committed`;
      this.report({ kind: 'mirror-damaged', at: this.length, reason });
    }
    if (this.#integrity !== 'intact' || this.#compared !== this.length) this.#row.markChanged();
    if (this.changed)
      this.#row.set({ inexact: [...regionsBefore(this.row.inexact, this.undisputed), ...undetermined] });
    this.#integrity = 'intact';
    this.#compared = this.length;
  }

  /** Remembers where the service says the file is. */
  note(facts: Partial<Pick<LiveFileRow, 'relativePath' | 'listedName'>>): void {
    this.#row.note(facts);
  }

  async append(bytes: Buffer): Promise<void> {
    // Before anything is appended, the row says so: nothing stands behind its position that was not compared.
    if (this.#row.wantsMark) {
      await this.flushToRow();
      await this.#options.checkpoint('append:mark');
      this.#row.mark();
    }
    this.#row.beginWriting();
    try {
      await this.#writer.append(bytes);
    } finally {
      this.#compared = this.length;
    }
    await this.#options.checkpoint('append:written');
    if (this.#writer.wantsCommit) {
      await this.flushToRow();
      this.#row.commit();
    } else this.#writer.flushAhead();
  }

  /** Appends `width` bytes that stand for ones that cannot be had; says so before they are there. */
  async appendInexact(width: number): Promise<void> {
    this.#row.commit({ inexact: withRegion(this.row.inexact, { start: this.length, length: width }) });
    await this.append(Buffer.alloc(width, '?'));
  }

  /** Puts the raw bytes into the inexact regions, in their order. */
  async mend(pieces: readonly Buffer[]): Promise<void> {
    this.#row.beginWriting();
    // A kill may leave some of them there: then the bytes are others than those that were committed, and no edit.
    this.#row.commit({ fingerprint: null, checksum: null });
    for (const [index, { start }] of this.row.inexact.entries())
      await this.#mirror.write(start, pieces[index] ?? Buffer.alloc(0));
    await this.#options.checkpoint('mend:written');
    await this.#flush();
    this.#row.set({ inexact: [] });
  }

  /** Keeps a mismatch with the row and reports it; a second one of its kind in the same poll is part of the first. */
  report(found: Mismatch): void {
    if (this.#reported.has(found.kind)) return;
    this.#reported.add(found.kind);
    const kept = this.#kept(found, this.row.generation);
    this.#row.set({ mismatches: withMismatch(this.row.mismatches, kept) });
    this.#row.markChanged();
    this.#options.onMismatch?.(this.row, kept);
  }

  reportDecoder(reason: string): void {
    this.report({ kind: 'decoder-changed', at: this.length, reason });
  }

  /** Removes what stands behind `length`; only for bytes that the remote file does not have. */
  async cut(length: number, reason: string): Promise<void> {
    this.report({ kind: 'mirror-damaged', at: length, reason });
    this.#row.beginWriting();
    // A promise that goes back is taken back first; until the rest is compared, the mirror counts as modified.
    if (length < this.row.position) {
      const fingerprint = await this.#mirror.fingerprint(length);
      const inexact = regionsBefore(this.row.inexact, length);
      this.#row.commit({ position: length, fingerprint, checksum: null, modifiedNs: null, bootId: null, inexact });
    }
    await this.#writer.cut(length);
    this.#compared = Math.min(this.#compared, length);
  }

  /** Keeps what is there as an old generation and starts the next one at 0. */
  async startGeneration(found: Mismatch): Promise<void> {
    this.#row.beginWriting();
    const flushed = await this.flushToRow();
    const kept = this.#kept(found, flushed.generation + 1);
    const row = { ...flushed, mismatches: withMismatch(flushed.mismatches, kept) };
    // Should a step of it fail, the row is as the steps before left it, and nothing is promised of the mirror.
    this.#integrity = 'modified';
    const commit = (begun: LiveFileRow) => this.#row.commit(begun);
    this.#row.set(await beginGeneration(row, this.#mirror, { ...this.#options, commit }));
    this.#writer.emptied();
    this.#compared = 0;
    this.#integrity = 'intact';
    this.#options.onMismatch?.(this.row, kept);
  }

  /** A kill left bytes behind the position that were appended on this boot: the system has them as they were written. */
  async promiseWritten(): Promise<void> {
    const ahead = this.length - this.row.position;
    if (this.#integrity !== 'intact' || ahead <= 0 || !(await this.hasItsFingerprint())) return;
    this.#row.beginWriting();
    this.#writer.foundUnflushed(ahead);
    this.#compared = this.length;
    await this.flushToRow();
  }

  /**
   * Flushes the mirror and brings the row to it. Unless the mirror is intact the position stays: nothing is promised of
   * bytes that were not compared.
   */
  async flushToRow(): Promise<LiveFileRow> {
    if (!this.changed || this.#integrity !== 'intact') return this.row;
    await this.#options.checkpoint('flush:begin');
    await this.#flush();
    const position = this.#compared;
    const fingerprint = await this.#mirror.fingerprint(position);
    const checksum = await this.#checksum(position);
    const { inode, modifiedNs } = await this.#mirror.look();
    this.#row.set({ position, fingerprint, checksum, inode, modifiedNs, bootId: null });
    await this.#options.checkpoint('flush:end');
    return this.row;
  }

  #kept(found: Mismatch, generation: number): KeptMismatch {
    return { ...found, generation, seenAt: this.#options.now() };
  }

  /** The checksum of the bytes before `position`: that of the committed ones, continued. */
  async #checksum(position: number): Promise<number> {
    const { checksum: value, position: committed } = this.row;
    const known = value === null || committed > position ? undefined : { position: committed, value };
    return await this.#mirror.checksum(position, known);
  }

  /** The row was committed: from now on, whoever else touches the mirror is found out. */
  noteCommitted(): void {
    if (this.#integrity === 'intact' && this.row.position === this.length) this.#row.noteLeftIntact();
  }

  /** Gives the mirror back; `mayStayOpen` if nothing failed, and it is likely to grow again. */
  async close(mayStayOpen = false): Promise<void> {
    await this.#writer.end();
    await this.#options.mirrors.giveBack(this.#mirror, { grew: mayStayOpen && this.appended > 0 });
  }

  /**
   * The system may hold bytes for clean whose flush failed, so a second flush would prove nothing: what was not
   * promised is taken back, and written anew when it comes again.
   */
  async #flush(): Promise<void> {
    try {
      await this.#writer.flush();
    } catch (error) {
      this.#compared = Math.min(this.row.position, this.#writer.flushedLength);
      const { inode, modifiedNs } = await this.#writer.takeBack(this.#compared);
      this.#row.set({ inode, modifiedNs });
      throw error;
    }
  }
}
