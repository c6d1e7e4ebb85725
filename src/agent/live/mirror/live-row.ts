/**
 * The row of one live file while it is polled: what is promised about its mirror. Some columns are committed before the
 * mirror is written, the others by the caller after the poll.
 *
 * Before the first bytes are appended, the row is marked with the boot id. After a kill, a start on the same boot can
 * trust the uncommitted tail: the kernel has it as it was written.
 */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';

export interface LiveRowOptions {
  /** The boot id; null if unknown, or if written bytes may be lost without a reboot (network file system). */
  readonly bootId: string | null;
  /** Commits a row durably. */
  readonly commit: (row: LiveFileRow) => void;
  /** Commits a row so that it survives a kill, though not a power loss. */
  readonly mark: (row: LiveFileRow) => void;
}

export class LiveRow {
  readonly memory: FileMemory;
  readonly #options: LiveRowOptions;
  #row: LiveFileRow;
  #changed = false;

  constructor(row: LiveFileRow, memory: FileMemory, options: LiveRowOptions) {
    this.#row = row;
    this.memory = memory;
    this.#options = options;
  }

  get current(): LiveFileRow {
    return this.#row;
  }

  /** Whether there is anything to commit. */
  get changed(): boolean {
    return this.#changed;
  }

  markChanged(): void {
    this.#changed = true;
  }

  /** Announces a write: until the next commit, a changed length does not prove a change by another process. */
  beginWriting(): void {
    this.#changed = true;
    this.memory.leftIntact = false;
  }

  /** Records that the mirror matches the committed row: from now on, changes by other processes are detected. */
  noteLeftIntact(): void {
    this.memory.leftIntact = true;
  }

  /** Sets columns for the next commit. */
  set(columns: Partial<LiveFileRow>): void {
    this.#row = { ...this.#row, ...columns };
  }

  commit(columns: Partial<LiveFileRow> = {}): void {
    this.set(columns);
    this.#options.commit(this.#row);
  }

  /** Whether the row lacks the mark that its uncommitted tail was appended on this boot. */
  get wantsMark(): boolean {
    const { bootId } = this.#options;
    return bootId !== null && this.#row.bootId !== bootId;
  }

  /** Sets that mark; only while all bytes after the committed offset are compared. */
  mark(): void {
    const { bootId, mark } = this.#options;
    mark({ ...this.#row, bootId });
    this.set({ bootId });
  }

  /** Records the paths of the file on the server. */
  note(facts: Partial<Pick<LiveFileRow, 'relativePath' | 'listedName'>>): void {
    const { relativePath, listedName } = this.#row;
    this.set(facts);
    if (this.#row.relativePath !== relativePath || this.#row.listedName !== listedName) this.#changed = true;
  }
}
