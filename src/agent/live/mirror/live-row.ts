/**
 * The row of one live file while it is polled: what is promised of its mirror. Some of it has to be committed before
 * the mirror is written, the rest by the caller once the poll is over.
 *
 * Before the first bytes are appended, it is marked with the boot of the machine, so that the next start on the same
 * boot knows what a kill left for as it was written, and promises it.
 */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';

export interface LiveRowOptions {
  /** The boot of the machine; null if it is not known, or what was written on it need not be there. */
  readonly bootId: string | null;
  /** Commits a row durably. */
  readonly commit: (row: LiveFileRow) => void;
  /** Commits a row so that a kill does not take it back, though a power loss may. */
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

  /** The mirror is going to be written: until that is committed, another length of it need not be of somebody else. */
  beginWriting(): void {
    this.#changed = true;
    this.memory.leftIntact = false;
  }

  /** It was committed, and the mirror is as it says: from now on, whoever else touches the mirror is found out. */
  noteLeftIntact(): void {
    this.memory.leftIntact = true;
  }

  /** For the next commit. */
  set(columns: Partial<LiveFileRow>): void {
    this.#row = { ...this.#row, ...columns };
  }

  commit(columns: Partial<LiveFileRow> = {}): void {
    this.set(columns);
    this.#options.commit(this.#row);
  }

  /** Whether it does not say yet that the bytes behind its position were appended on this boot. */
  get wantsMark(): boolean {
    const { bootId } = this.#options;
    return bootId !== null && this.#row.bootId !== bootId;
  }

  /** Says so; only while nothing stands behind its position that was not compared. */
  mark(): void {
    const { bootId, mark } = this.#options;
    mark({ ...this.#row, bootId });
    this.set({ bootId });
  }

  /** Remembers where the service says the file is. */
  note(facts: Partial<Pick<LiveFileRow, 'relativePath' | 'listedName'>>): void {
    const { relativePath, listedName } = this.#row;
    this.set(facts);
    if (this.#row.relativePath !== relativePath || this.#row.listedName !== listedName) this.#changed = true;
  }
}
