/**
 * Asks for a live file of tasks that may be there, behind every end of it: an answer, which holds no text, proves that the
 * task is one of the job; silence proves nothing (docs/servers.md 10.2). Many in a call, as few calls as possible; what
 * the service takes is found out and kept.
 */
import { asJobtailError } from '../../errors.ts';
import type { JobId, LiveFileName, TaskId } from '../../job.ts';
import type { HabitStore } from '../live/text/encoding.ts';
import { BEHIND_EVERY_END, type Remote } from '../ports.ts';

/** What the service takes in one call, and what it does with ids that are no tasks of the job. */
const ENTRIES_HABIT = 'probe-entries';
const STRANGERS_HABIT = 'strange-tasks';

/** Whether an id that is no task of the job is known to fail the call it is in. */
export const strangersFail = (habits: HabitStore): boolean => habits.get(STRANGERS_HABIT) === 'fault';

/** How many candidates a look can ask about, as far as is known. */
export function mostCandidates(habits: HabitStore): number {
  return Math.min(MOST_CANDIDATES, MOST_CALLS * Number(habits.get(ENTRIES_HABIT) ?? MOST_ENTRIES));
}

/** So few always fit (docs/rest.md 2.1). A call that went through lets the next one have more. */
const FIRST_ENTRIES = 4;
const GROWTH = 4;
const MOST_ENTRIES = 256;
/** Of all calls of a look together. */
const MOST_CANDIDATES = 320;
const MOST_CALLS = 8;

interface ProbeOptions {
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly habits: HabitStore;
  /** Entries of a call, as far as polls have found out. */
  readonly mostEntries: number;
  /** Which file is asked for. */
  readonly file: LiveFileName;
  /** All there can be. */
  readonly isEnough: (found: readonly TaskId[]) => boolean;
  readonly signal: AbortSignal;
}

export interface Probed {
  readonly found: readonly TaskId[];
  /** Candidates that were asked about, or that fail a call by themselves. */
  readonly asked: number;
  /** The service answers for whatever id it is asked, so its answers prove nothing. */
  readonly answersAll: boolean;
}

/** Asks about candidates, the first ones first. @throws JobtailError one that is not about what was asked */
export async function probe(candidates: Iterator<TaskId>, options: ProbeOptions): Promise<Probed> {
  const probing = new Probing(options);
  const next = (count: number) => {
    const taken: TaskId[] = [];
    while (taken.length < count && probing.asked + taken.length < MOST_CANDIDATES) {
      const { value, done } = candidates.next();
      if (done === true) break;
      taken.push(value);
    }
    return taken;
  };
  let waiting: TaskId[] = [];
  while (probing.calls < MOST_CALLS && !options.isEnough(probing.found)) {
    const { entries } = probing;
    waiting.push(...next(entries - waiting.length));
    const slice = waiting.slice(0, entries);
    if (slice.length === 0) break;
    const isDone = await probing.ask(slice);
    if (isDone) waiting = waiting.slice(slice.length);
  }
  const answersAll = await probing.answersStrangers();
  return { found: answersAll ? [] : probing.found, asked: probing.asked, answersAll };
}

class Probing {
  readonly found: TaskId[] = [];
  readonly #options: ProbeOptions;
  calls = 0;
  asked = 0;
  /** How many the next call has. */
  entries: number;
  #most: number;
  /** The length of a call that failed, as long as none with less went through. */
  #failed: number | undefined;

  constructor(options: ProbeOptions) {
    this.#options = options;
    const { habits, mostEntries } = options;
    this.#most = Math.min(mostEntries, MOST_ENTRIES, Number(habits.get(ENTRIES_HABIT) ?? MOST_ENTRIES));
    this.entries = Math.min(FIRST_ENTRIES, this.#most);
  }

  /** Whether these need not be asked about again in this look. */
  async ask(slice: readonly TaskId[]): Promise<boolean> {
    try {
      const answered = await this.#call(slice);
      this.found.push(...answered);
      if (slice.length > 1 || !strangersFail(this.#options.habits))
        this.#wentThrough(slice.length, answered.length < slice.length);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      if (slice.length > 1) {
        this.#failed = slice.length;
        this.entries = strangersFail(this.#options.habits) ? 1 : Math.floor(slice.length / 2);
        return false;
      }
      this.#learn(STRANGERS_HABIT, 'fault');
    }
    this.asked += slice.length;
    return true;
  }

  /** Where a call shows that strangers do no harm, a longer one that failed was too long. */
  #wentThrough(entries: number, hadStrangers: boolean): void {
    if (hadStrangers) this.#learn(STRANGERS_HABIT, 'left-out');
    if (hadStrangers && this.#failed !== undefined) {
      this.#most = entries;
      this.#learn(ENTRIES_HABIT, String(entries));
    }
    this.#failed = undefined;
    this.entries = Math.min(this.#most, entries * GROWTH);
  }

  /** Where all that was asked about was answered, a task that cannot be there shows whether that means anything. */
  async answersStrangers(): Promise<boolean> {
    const { habits } = this.#options;
    if (this.found.length === 0 || this.found.length < this.asked || habits.get(STRANGERS_HABIT) !== undefined)
      return false;
    try {
      const answered = await this.#call([STRANGER]);
      if (answered.length > 0) return true;
      this.#learn(STRANGERS_HABIT, 'left-out');
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      this.#learn(STRANGERS_HABIT, 'fault');
    }
    return false;
  }

  #learn(habit: string, value: string): void {
    const { habits } = this.#options;
    if (habits.get(habit) !== value) habits.set(habit, value);
  }

  /** Those of the tasks that are there. */
  async #call(tasks: readonly TaskId[]): Promise<TaskId[]> {
    const { remote, jobId, file, signal } = this.#options;
    this.calls += 1;
    const wanted = tasks.map((taskId) => ({ taskId, file, offset: BEHIND_EVERY_END }));
    const { parts } = await remote.readParts(jobId, wanted, signal);
    for (const { content } of parts) await content.release();
    return parts.map(({ taskId }) => taskId);
  }
}

/** No database counts so far. */
const STRANGER = String(2n ** 62n + 1n) as TaskId;
