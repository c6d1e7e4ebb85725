/**
 * The budget of calls per minute of all agents of one service and user. Each call takes a slot; slots are evenly spaced
 * by the clock of the database. An agent with many calls takes several slots at once. While the database is away, it
 * keeps to its share of the minute.
 */
import type { CallBudget } from '../agent/calls.ts';
import { type Clock, sleep } from '../system/clock.ts';
import type { Database } from './database.ts';

interface BudgetOptions {
  readonly name: string;
  /** Null: no fixed limit; each agent keeps its part of the measured share. */
  readonly callsPerMinute: number | null;
  readonly clock: Pick<Clock, 'monotonic' | 'timer'>;
}

/** Slots taken at once lie within this time: so many are unused at most, also after the agent died. */
const AHEAD_MS = 500;
/** Calls expected in this time get their slots at once, as far as `AHEAD_MS` allows. */
const VALID_MS = 5_000;
/** A call that would have to wait longer takes no slot, and asks again later. */
const MAX_WAIT_MS = 1_000;

export class Budget implements CallBudget {
  readonly #options: BudgetOptions;
  readonly #spacingMs: number;
  #database: Pick<Database, 'query'> | undefined;
  #sharers = 1;
  /** By the monotonic clock. */
  #slots: number[] = [];
  #waiting = 0;
  #asking: Promise<void> | undefined;
  #nextAlone = 0;
  readonly #made: number[] = [];
  calls = 0;
  waitedMs = 0;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#spacingMs = 60_000 / (options.callsPerMinute ?? Number.POSITIVE_INFINITY);
  }

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

  async take(signal: AbortSignal): Promise<void> {
    const { clock, callsPerMinute } = this.#options;
    const from = clock.monotonic();
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
    const waitMs = slot - clock.monotonic();
    if (waitMs > 0) await sleep(clock, waitMs, signal);
    this.calls += 1;
    this.waitedMs += clock.monotonic() - from;
    this.#made.push(clock.monotonic());
    this.#forgetOld();
  }

  #hasSlot(): boolean {
    const since = this.#options.clock.monotonic() - VALID_MS;
    while ((this.#slots[0] ?? Number.POSITIVE_INFINITY) < since) this.#slots.shift();
    return this.#slots.length > 0;
  }

  #forgetOld(): void {
    const since = this.#options.clock.monotonic() - 60_000;
    while ((this.#made[0] ?? Number.POSITIVE_INFINITY) <= since) this.#made.shift();
  }

  async #ask(): Promise<void> {
    const max = Math.max(1, Math.floor(AHEAD_MS / this.#spacingMs));
    // Slots for the next seconds too, as many as the calls of the last minute suggest.
    const expected = Math.ceil((this.callsLastMinute * VALID_MS) / 60_000);
    const wanted = Math.min(Math.max(this.#waiting, expected), max);
    if (this.#database === undefined) return this.#takeAlone(wanted);
    try {
      const waitMs = await this.#askDatabase(this.#database, wanted);
      if (waitMs === undefined) await sleep(this.#options.clock, MAX_WAIT_MS / 2);
      else this.#add(this.#options.clock.monotonic() + waitMs, wanted, this.#spacingMs);
    } catch {
      // The heartbeat reports the lost database and its return; until then no call waits for it.
      this.#database = undefined;
      this.#takeAlone(wanted);
    }
  }

  /** Milliseconds until the first of the taken slots; undefined if that is longer than the limit. */
  async #askDatabase(database: Pick<Database, 'query'>, wanted: number): Promise<number | undefined> {
    // A slot further ahead than possible comes from a clock that was set back.
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
    const first = Math.max(this.#options.clock.monotonic(), this.#nextAlone);
    this.#nextAlone = first + wanted * spacing;
    this.#add(first, wanted, spacing);
  }

  #add(first: number, count: number, spacingMs: number): void {
    for (let index = 0; index < count; index++) this.#slots.push(first + index * spacingMs);
  }
}
