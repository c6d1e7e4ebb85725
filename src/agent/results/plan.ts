/** Compares the ledger with the listing. Keeps no memory of files that are not due: both can be very long. */
import path from 'node:path';
import { keyText } from '../../job.ts';
import { partsOf } from '../../safe-names.ts';
import { inSlices } from '../../slices.ts';
import type { LiveFileRow, ResultRow, ResultState } from '../../store/rows.ts';
import { DAY_MS } from '../../system/clock.ts';
import { type Ledger, NO_STAMP, type Stamps, tooLarge } from './ledger.ts';
import { type Judge, type Refusals, SkippedNames } from './listing.ts';
import type { LiveLinks } from './place/live-links.ts';

/** A result that is due. Small, because there may be many. */
export class DueResult {
  readonly row: ResultRow;
  readonly #directory: string;

  constructor(row: ResultRow, directory: string) {
    this.row = row;
    this.#directory = directory;
  }

  /** The same, after the service failed to send it. */
  notSent(): DueResult {
    return new DueResult({ ...this.row, hangs: this.row.hangs + 1 }, this.#directory);
  }

  get parts(): readonly string[] {
    return partsOf(this.row.name);
  }

  get target(): string {
    return [this.#directory, ...this.parts].join(path.sep);
  }
}

interface ProvenLink {
  readonly result: DueResult;
  readonly live: LiveFileRow;
}

export interface Plan {
  readonly due: readonly DueResult[];
  readonly links: readonly ProvenLink[];
  readonly refusals: Refusals;
  /** Copies of what is listed no longer, where others need a directory. */
  readonly inTheWay: readonly DueResult[];
}

interface PlanOptions {
  readonly left: Set<string>;
  readonly ledger: Ledger;
  readonly links: LiveLinks;
  readonly judge: Judge;
  readonly directory: string;
  readonly stamps: Stamps;
  /** Whether the fetched content is still in place; checked before a fetch is skipped. */
  readonly stands: (result: DueResult) => Promise<boolean>;
  /** Whether the path of a link has nothing. */
  readonly isLinkGone: (link: DueResult) => Promise<boolean>;
  /** Whether every file is fetched, due or not, unless its date proves that it is unchanged. */
  readonly isFinal: boolean;
  readonly onlyInFlux: boolean;
  readonly maxFileBytes: number | null;
  readonly signal: AbortSignal;
}

const MAY_BE_LIVE =
  'has the path of a live file, and waits for the proof: at the end of the job at the latest, or by `agent sync`';
const UNFINISHED: Partial<Record<ResultState, string>> = { listed: 'it had not arrived', 'in-flux': 'it was changing' };
/** Maximum rows of files that are here and no longer listed. */
const MAX_REMOVED = 200_000;

export async function distinct(names: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const name of inSlices(names)) found.add(name);
  return found;
}

export async function planSync(options: PlanOptions): Promise<Plan> {
  const { left, ledger, signal } = options;
  const planning = new Planning(options);
  /** Saves while it goes on, and ends at a stop. */
  const each = async <Item>(items: Iterable<Item>, take: (item: Item) => void | Promise<void>) => {
    for await (const item of inSlices(items)) {
      signal.throwIfAborted();
      await take(item);
      await ledger.keepUp();
    }
  };
  // Of conflicting names, the one that was there first is kept.
  await each(ledger.rows(), (row) => planning.know(row));
  await each(left, (name) => planning.meet(name));
  await each(planning.gone, (name) => planning.meetGone(name));
  await each(planning.skipped.formerNames, (name) => ledger.forget(name));
  const plan = planning.end();
  await ledger.flush();
  return plan;
}

class Planning {
  readonly #options: PlanOptions;
  readonly skipped: SkippedNames;
  /** By what they may prove: the position of the live file that each may be. */
  readonly #due = new Map<number, DueResult[]>();
  /** Never fetched; one of them proves where the live files of this job are. */
  readonly #ofTasks = new Map<number, DueResult[]>();
  #arePlacesKnown = false;
  readonly #links: ProvenLink[] = [];
  readonly #inTheWay: DueResult[] = [];
  readonly #isNothingListed: boolean;
  readonly gone: string[] = [];

  constructor(options: PlanOptions) {
    this.#options = options;
    this.skipped = new SkippedNames(options.ledger);
    this.#isNothingListed = options.left.size === 0;
  }

  async know(row: ResultRow): Promise<void> {
    const { ledger, left, judge } = this.#options;
    // Its files may be away, not removed: what never came is not complete by that.
    if (this.#isNothingListed && (row.state === 'failed' || row.state === 'refused')) return;
    const unfinished = row.reason === MAY_BE_LIVE ? undefined : UNFINISHED[row.state];
    if (this.#isNothingListed && unfinished !== undefined) {
      ledger.postponed(row, 'failed', `${unfinished} when the service listed no file of the job any more`);
      return;
    }
    if (this.skipped.takeFormer(row, left)) return;
    if (!left.delete(row.name)) {
      this.#lose(row);
      return;
    }
    const verdict = judge.verdictOn(row.name);
    if (verdict.kind === 'fetch') {
      await this.#plan(row, verdict.parts);
      return;
    }
    this.skipped.add(row, verdict);
    ledger.forget(row.name);
  }

  async meet(name: string): Promise<void> {
    const { ledger, links, judge } = this.#options;
    const verdict = judge.verdictOn(name);
    const fresh = ledger.fresh(name);
    if (verdict.kind !== 'fetch') {
      this.skipped.add(fresh, verdict);
      return;
    }
    this.skipped.admit(name);
    const mayBeLive = links.candidates(verdict.parts).length > 0;
    // The mirror is being filled; later the download proves that it is the live file, and no second copy is made.
    const later = mayBeLive ? { reason: MAY_BE_LIVE, dueAt: fresh.dueAt + fresh.intervalMs } : {};
    const row = { ...fresh, ...later };
    ledger.add(row);
    await this.#plan(row, verdict.parts);
  }

  /** Its path may be listed in another form after an upgrade of the server: it is fetched once more. */
  meetGone(name: string): void {
    const { ledger, judge, directory } = this.#options;
    const row = judge.isDirectory(name) ? ledger.saved(name) : undefined;
    if (row !== undefined) this.#inTheWay.push(new DueResult(row, directory));
    if (judge.isTaken(name)) ledger.forget(name);
  }

  end(): Plan {
    // The longest live files first: a proof of them helps to identify the others.
    const longest = [...this.#due].sort(([a], [b]) => b - a).flatMap(([, results]) => results);
    // The shortest one that has bytes suffices: then the places of the others are known.
    const shortest = [...this.#ofTasks].sort(([a], [b]) => (a || Infinity) - (b || Infinity));
    const ofTasks = shortest.flatMap(([, results]) => results).slice(0, this.#arePlacesKnown ? undefined : 1);
    return {
      due: [...ofTasks, ...longest],
      links: this.#links,
      refusals: this.skipped.end(),
      inTheWay: this.#inTheWay,
    };
  }

  async #plan(row: ResultRow, parts: readonly string[]): Promise<void> {
    const { ledger, links, isFinal, onlyInFlux, directory, isLinkGone } = this.#options;
    if (onlyInFlux && row.state !== 'in-flux' && row.state !== 'listed') return;
    const live = links.proven(row, parts, isFinal);
    if (live !== undefined) {
      const result = new DueResult(row, directory);
      const isLinked = row.state === 'linked' && row.live === keyText(live) && !(await isLinkGone(result));
      if (!isLinked) this.#links.push({ result, live });
    } else if (
      !this.#waitsForEnd(row, parts) &&
      isDue(row, ledger.startedAt, this.#options) &&
      !(await this.#isSpared(row))
    ) {
      const unproven = { ...row, stampProven: false };
      // Saved before the fetch: after a kill in between, the old date must not prove the old content.
      if (row.stampProven) ledger.add(unproven);
      const weight = links.candidates(parts).reduce((max, { position }) => Math.max(max, position), -1);
      const due = !isFinal && row.fetchedAt === null && links.isOfTask(parts) ? this.#ofTasks : this.#due;
      const alike = due.get(weight) ?? [];
      alike.push(new DueResult(unproven, directory));
      due.set(weight, alike);
    }
  }

  /**
   * Whether a name is where a live file is expected: it has the bytes that the mirror has, and more each time. The
   * proof at the end of the job, or of a requested sync, makes it a link. A job may have no end: it waits for a day.
   */
  #waitsForEnd(row: ResultRow, parts: readonly string[]): boolean {
    const { ledger, links, isFinal } = this.#options;
    const live = links.expectedAt(row.name, parts);
    if (live === undefined) return false;
    this.#arePlacesKnown = true;
    return !isFinal && ledger.startedAt - (row.fetchedAt ?? row.listedAt) < DAY_MS;
  }

  /** Handles a file that is no longer listed: a copy here is kept; otherwise its row is removed. */
  #lose(row: ResultRow): void {
    const { ledger } = this.#options;
    const isHere = row.sha256 !== null || row.live !== null;
    if (!isHere || this.gone.length >= MAX_REMOVED) {
      ledger.forget(row.name);
      return;
    }
    this.gone.push(row.name);
    const state = row.live === null ? 'synced' : 'linked';
    // If it returns, it may be another file with the same time.
    if (row.state !== state || row.stamp !== null) ledger.add({ ...row, ...NO_STAMP, state, reason: null });
  }

  /** Whether a fetch is skipped because it would bring nothing new. */
  async #isSpared(row: ResultRow): Promise<boolean> {
    const { ledger, stamps, stands, directory } = this.#options;
    if (!stamps.spares(row) || !(await stands(new DueResult(row, directory)))) return false;
    if (row.state === 'in-flux') ledger.add({ ...row, state: 'synced' });
    return true;
  }
}

function isDue(row: ResultRow, now: number, { isFinal, maxFileBytes }: PlanOptions): boolean {
  // A date beyond one interval means that the clock was set back.
  if (row.dueAt <= now || row.dueAt > now + row.intervalMs) return true;
  // What was too large by another limit may not be it any more.
  return isFinal && row.reason !== tooLarge(maxFileBytes);
}
