/**
 * The calls a minute that all agents of one service and user may make together: each call has a slot, and the slots
 * follow each other at the same distance, by the clock of the database. An agent takes several at once where it has
 * many calls, and keeps to its share of the minute while the database cannot be asked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallBudget } from '../agent/calls.ts';
import type { Database } from './database.ts';

export interface BudgetOptions {
  /** The service and the user. */
  readonly name: string;
  /** Null: no fixed limit; each agent keeps its part of the measured share. */
  readonly callsPerMinute: number | null;
  readonly monotonic: () => number;
}

/**
 * Slots that are taken at once lie within this time: an agent has no more of them unused, and leaves no more if it
 * dies.
 */
const AHEAD_MS = 500;
/** Slots for the calls of this time are taken at once, as far as `AHEAD_MS` allows, and expire after it. */
const VALID_MS = 5_000;
/** A call that would have to wait longer asks again then: its slot is not taken before. */
const MAX_WAIT_MS = 1_000;

export class Budget implements CallBudget {
  readonly #options: BudgetOptions;
  readonly #spacingMs: number;
  #database: Pick<Database, 'query'> | undefined;
  /** Agents that share it, as far as was heard last. */
  #sharers = 1;
  /** Slots that were taken, by the clock that only goes forward. */
  #slots: number[] = [];
  #waiting = 0;
  #asking: Promise<void> | undefined;
  #nextAlone = 0;
  /** When calls of the last minute were made. */
  readonly #made: number[] = [];
  calls = 0;
  waitedMs = 0;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#spacingMs = 60_000 / (options.callsPerMinute ?? Number.POSITIVE_INFINITY);
  }

  /** Sets the connection to the database for the budget; undefined while there is none. */
  use(database: Pick<Database, 'query'> | undefined, sharers: number): void {
    this.#database = database;
    this.#sharers = Math.max(1, sharers);
  }

  get sharers(): number {
    return this.#sharers;
  }

  get callsLastMinute(): number {
    this.#forgetOld();
    return this.#made.length;
  }

  /** Resolves when a call may be made. */
  async take(signal: AbortSignal): Promise<void> {
    const { monotonic, callsPerMinute } = this.#options;
    const from = monotonic();
    this.#waiting += 1;
    try {
      while (callsPerMinute !== null && !this.#hasSlot()) {
        this.#asking ??= this.#ask().finally(() => {
          this.#asking = undefined;
        });
        await this.#asking;
        signal.throwIfAborted();
      }
    } finally {
      this.#waiting -= 1;
    }
    const slot = this.#slots.shift() ?? 0;
    if (slot > monotonic()) await sleep(slot - monotonic(), undefined, { signal });
    this.calls += 1;
    this.waitedMs += monotonic() - from;
    this.#made.push(monotonic());
    this.#forgetOld();
  }

  #hasSlot(): boolean {
    const since = this.#options.monotonic() - VALID_MS;
    while ((this.#slots[0] ?? Number.POSITIVE_INFINITY) < since) this.#slots.shift();
    return this.#slots.length > 0;
  }

  #forgetOld(): void {
    const since = this.#options.monotonic() - 60_000;
    while ((this.#made[0] ?? Number.POSITIVE_INFINITY) <= since) this.#made.shift();
  }

  /** Takes slots for the calls that wait. */
  async #ask(): Promise<void> {
    const max = Math.max(1, Math.floor(AHEAD_MS / this.#spacingMs));
    // Slots for the next seconds, too, by how many calls there were in the last minute.
    const expected = Math.ceil((this.callsLastMinute * VALID_MS) / 60_000);
    const wanted = Math.min(Math.max(this.#waiting, expected), max);
    if (this.#database === undefined) return this.#takeAlone(wanted);
    try {
      const waitMs = await this.#askDatabase(this.#database, wanted);
      if (waitMs === undefined) await sleep(MAX_WAIT_MS / 2);
      else this.#add(this.#options.monotonic() + waitMs, wanted, this.#spacingMs);
    } catch {
      // The heartbeat reports a lost database and its return: until then, no call waits for it again.
      this.#database = undefined;
      this.#takeAlone(wanted);
    }
  }

  /** How long it takes until the first of the slots, which are taken; undefined if that would be too long. */
  async #askDatabase(database: Pick<Database, 'query'>, wanted: number): Promise<number | undefined> {
    // A slot that is further away than any can be is of a clock that was set back since.
    const [row] = await database.query<{ readonly waitMs: number }>(
      `INSERT INTO {s}.budgets AS b (name, next_slot) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
       ON CONFLICT (name) DO UPDATE SET next_slot = $2 * interval '1 ms' + CASE
         WHEN b.next_slot > clock_timestamp() + interval '3 minutes' THEN clock_timestamp()
         ELSE greatest(b.next_slot, clock_timestamp()) END
       WHERE b.next_slot <= clock_timestamp() + $3 * interval '1 ms' OR b.next_slot > clock_timestamp() + interval '3 minutes'
       RETURNING (extract(epoch FROM next_slot - clock_timestamp()) * 1000 - $2)::float AS "waitMs"`,
      [this.#options.name, wanted * this.#spacingMs, MAX_WAIT_MS],
    );
    return row && Math.max(0, row.waitMs);
  }

  #takeAlone(wanted: number): void {
    const spacing = this.#spacingMs * this.#sharers;
    const first = Math.max(this.#options.monotonic(), this.#nextAlone);
    this.#nextAlone = first + wanted * spacing;
    this.#add(first, wanted, spacing);
  }

  #add(first: number, count: number, spacingMs: number): void {
    for (let index = 0; index < count; index++) this.#slots.push(first + index * spacingMs);
  }
}
