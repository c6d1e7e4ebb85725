/** The events of live files: lines that a rule finds, rewrites and truncations. Each is committed with its position. */
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import { isOver, type JobId, keyText, type LiveFileKey } from '../job.ts';
import { statesOf, withoutColours } from '../line-states.ts';
import { MAX_LINE_CHARACTERS } from '../notification.ts';
import { expressionThread, matchingIn } from '../search/guarded-thread.ts';
import { type DeliveryRow, MAX_WAITING, type ReadPositionRow } from '../store/outbox.ts';
import type { JobRow, LiveFileRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { type EventOf, newEvent } from './events.ts';
import { readLines } from './lines.ts';
import { deliveriesOf, deliveryOf, type Rule } from './rules.ts';

interface FileEventsOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  readonly rules: readonly Rule[];
  /** Whether the names of jobs are reported. */
  readonly hasJobService: boolean;
  /** In place of a thread. */
  readonly matching?: (source: string, texts: readonly string[]) => Promise<number[] | undefined>;
}

/** Skipped lines of a rule are logged once in this time, with their number. */
const SKIPPED_MS = 60_000;
/** The lines of a job wait so long for a report of its name. */
const NAME_MS = 15 * 60_000;

export class FileEvents {
  readonly #options: FileEventsOptions;
  readonly #thread = expressionThread();
  /** Lines of each rule that were skipped and are not logged yet, and when the last ones were logged. */
  readonly #skipped = new Map<Rule, { since: number; lines: number }>();
  /** How far files without a further complete line were read. */
  readonly #seen = new Map<string, string>();
  /** Since when files wait for the name of their job, by the monotonic clock. */
  readonly #unnamed = new Map<string, number>();

  constructor(options: FileEventsOptions) {
    this.#options = options;
  }

  /** Forgets all files but those that are unread. */
  forgetOthers(unread: readonly (LiveFileKey & { readonly jobId: JobId })[]): void {
    const names = new Set(unread.map(nameOf));
    for (const known of [this.#seen, this.#unnamed])
      for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }

  /** `goesOn`: asked after each piece whether the file is read further now; else the next call continues. */
  async read(jobId: JobId, key: LiveFileKey, goesOn: () => boolean): Promise<void> {
    const { store } = this.#options;
    for (;;) {
      const row = store.liveFiles.get(jobId, key);
      const job = store.jobs.get(jobId);
      // A generation under rotation is read afterwards.
      if (row === undefined || job === undefined || row.rotation !== null) return;
      if (!isOver(job) && this.#waitsForName(row)) return;
      const at = store.outbox.position(jobId, key) ?? { jobId, ...keyOf(row), generation: 1, position: 0, lines: 0 };
      if (at.generation > row.generation) {
        // An older state was restored.
        this.#commit(row, { ...at, generation: row.generation, position: 0, lines: 0 }, []);
        return;
      }
      const isFormer = at.generation < row.generation;
      if (!isOver(job) && this.#seen.get(nameOf(row)) === endOf(row)) return;
      if (!(await this.#readGeneration(row, at, job, goesOn))) return;
      if (!isFormer) return void this.#seen.set(nameOf(row), endOf(row));
    }
  }

  /** Whether a rule may take the lines by the name of the job, which may still be reported. */
  #waitsForName(row: LiveFileRow): boolean {
    const { store, clock, hasJobService } = this.#options;
    const isReported = !hasJobService || store.jobInformation.get(row.jobId) !== undefined;
    if (isReported || !this.#options.rules.some((rule) => rule.needsName(row))) return false;
    const now = clock.monotonic();
    const since = this.#unnamed.get(nameOf(row)) ?? now;
    this.#unnamed.set(nameOf(row), since);
    return now - since < NAME_MS;
  }

  /** Reads one generation to its end; false if the file changed meanwhile or it does not go on, and must be read again. */
  async #readGeneration(row: LiveFileRow, from: ReadPositionRow, job: JobRow, goesOn: () => boolean): Promise<boolean> {
    const { store, config, clock } = this.#options;
    const { jobId } = row;
    const former = row.generation - from.generation;
    const jobName = store.jobInformation.get(jobId)?.information.name ?? undefined;
    const about = { jobId, ...(jobName === undefined ? {} : { jobName }), taskId: row.taskId, file: row.file };
    const rules = this.#options.rules.filter((rule) => rule.readsFile(about));
    const end = former > 0 ? Number.POSITIVE_INFINITY : row.position;
    const isLast = former > 0 || isOver(job);
    const options = { mirrorDirectory: config.mirror.directory, jobId, key: keyOf(row), former, end, isLast };
    let at = from;
    const pieces = rules.length === 0 ? [] : readLines({ ...options, from: at.position });
    for await (const { lines, next, isCut } of pieces) {
      const found: DeliveryRow[] = [];
      for (const rule of rules)
        found.push(...(await this.#matches(rule, lines, at, { ...about, generation: at.generation })));
      at = { ...at, position: next, lines: at.lines === null ? null : at.lines + lines.length - Number(isCut) };
      if (!this.#commit(row, at, found) || !goesOn()) return false;
    }
    if (former === 0) return rules.length > 0 || this.#commit(row, { ...at, position: row.position, lines: null }, []);
    const kept = row.mismatches.find(
      ({ generation, kind }) => generation === from.generation + 1 && (kind === 'truncated' || kind === 'rewritten'),
    );
    const type = kept?.kind === 'truncated' ? 'truncated' : 'rewritten';
    const event = newEvent(type, clock.now(), {
      ...about,
      generation: from.generation + 1,
      ...(kept === undefined ? {} : { reason: kept.reason }),
    });
    const next = { ...at, generation: from.generation + 1, position: 0, lines: 0 };
    return this.#commit(row, next, deliveriesOf(this.#options.rules, [event], clock.now()));
  }

  async #matches(
    rule: Rule,
    lines: readonly string[],
    { lines: before }: ReadPositionRow,
    about: EventOf,
  ): Promise<DeliveryRow[]> {
    const { clock, log } = this.#options;
    const states = lines.flatMap((line, index) => statesOf(line, MAX_LINE_CHARACTERS).map((text) => ({ index, text })));
    const texts = states.map(({ text }) => withoutColours(text));
    const source = rule.settings.match ?? '';
    const matching = await (this.#options.matching?.(source, texts) ?? matchingIn(this.#thread, source, texts));
    const skipped = this.#skipped.get(rule) ?? { since: Number.NEGATIVE_INFINITY, lines: 0 };
    if (matching === undefined) skipped.lines += lines.length;
    if (skipped.lines > 0 && clock.monotonic() - skipped.since >= SKIPPED_MS) {
      const { jobId, taskId, file } = about;
      const hint = 'write it without a repetition inside of another one';
      const fields = { jobId, taskId, file, target: rule.target, lines: skipped.lines, hint };
      log.warn(fields, 'the pattern of a notification takes too long, lines skipped');
      Object.assign(skipped, { since: clock.monotonic(), lines: 0 });
    }
    this.#skipped.set(rule, skipped);
    if (matching === undefined) return [];
    // Of a line, the last of its states that matches.
    const ofLines = new Map(matching.flatMap((at) => states[at] ?? []).map((match) => [match.index, match]));
    const found = [...ofLines.values()];
    const deliveries = found.slice(0, MAX_WAITING).map(({ index, text }) => {
      const line = before === null ? {} : { line: before + index + 1 };
      return deliveryOf(rule, newEvent('match', clock.now(), { ...about, ...line, text }), clock.now());
    });
    const last = deliveries.pop();
    const count = found.length - deliveries.length;
    return last === undefined ? [] : [...deliveries, { ...last, event: { ...last.event, count } }];
  }

  /** Commits a position and its deliveries; false if the generation changed. */
  #commit(row: LiveFileRow, at: ReadPositionRow, deliveries: readonly DeliveryRow[]): boolean {
    const { store } = this.#options;
    return store.transaction(() => {
      const now = store.liveFiles.get(row.jobId, row);
      if (now === undefined || now.generation !== row.generation || now.rotation !== null) return false;
      store.outbox.add(deliveries);
      store.outbox.savePosition(at);
      return true;
    });
  }
}

const keyOf = ({ taskId, file }: LiveFileKey): LiveFileKey => ({ taskId, file });
const nameOf = (row: LiveFileKey & { readonly jobId: JobId }) => `${row.jobId} ${keyText(row)}`;
const endOf = ({ generation, position }: LiveFileRow) => `${generation} ${position}`;
