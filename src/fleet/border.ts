/** Parses rows of the fleet's database. A malformed or unknown one is reported once, and ignored. */
import { ERROR_POLICIES } from '../errors.ts';
import { type JobId, LIVE_FILE_NAMES, parseJobId, parseTaskId, type TaskId } from '../job.ts';
import { MISMATCH_KINDS } from '../mismatch.ts';
import { EVENT_TYPES } from '../notification.ts';
import { printable } from '../printable.ts';
import { isQuickPattern } from '../quick-pattern.ts';
import { PORTABLE_KEYS, type PortableRow, type PortableTable } from '../store/portable-rows.ts';
import type { WatchMineRow, WatchRequest } from '../store/rows.ts';
import { isNotEmpty, isString, listOf, type Output, objectOf, oneOf, Type, typeOf } from '../value-type.ts';

/**
 * watch: follow the job. unwatch: one last pass, then stop following. end: stop at once. sync: one pass. drop: no
 * configuration names the job any more. resume: a settled job was started again.
 */
const COMMAND_KINDS = ['watch', 'unwatch', 'end', 'sync', 'drop', 'resume'] as const;
type CommandKind = (typeof COMMAND_KINDS)[number];

export interface Command {
  readonly jobId: JobId;
  readonly kind: CommandKind;
  readonly body?: WatchRequest | null;
}

export interface OpenCommand extends Command {
  readonly commandId: string;
  /** Whether the rows of the job have the effect of the command, so that only its answer is missing. */
  readonly isApplied: boolean;
  readonly body: WatchRequest | null;
}

/** Limits the memory that a table full of malformed rows can take. */
const MAX_REPORTS = 1_000;
const MAX_SHOWN = 100;
export const NOT_STORED = 'this version cannot store it';

const whole = typeOf((found): found is number => Number.isSafeInteger(found) && Number(found) >= 0);
const text = typeOf(isString);
const maybeText = text.nullable();
const flag = typeOf((found) => typeof found === 'boolean');
/** Paths are built from it, so only canonical decimal text is accepted. */
const jobId = typeOf((found): found is JobId => typeof found === 'string' && parseJobId(found) === found);
const taskId = typeOf((found): found is TaskId => typeof found === 'string' && parseTaskId(found) === found);
const liveFile = oneOf(LIVE_FILE_NAMES);
const globs = listOf(text.refine((found) => found !== '' && isQuickPattern(found)));

const WATCH_REQUEST = objectOf({
  jobId,
  tasks: listOf(taskId).nullable(),
  files: listOf(liveFile).refine(isNotEmpty),
  results: flag,
  settleAfterMs: whole.nullable(),
  stallAfterMs: whole.nullable().optional(),
  source: oneOf(['config', 'command', 'mine']),
});

const RULE = objectOf({
  ...{ source: oneOf(['command']), since: whole, maxAgeMs: whole },
  ...{ include: globs.refine(isNotEmpty), exclude: globs },
  maxJobs: whole.refine((jobs) => jobs >= 1 && jobs <= 100_000),
});

/** Only shown, never requested. Older agents have none. */
const viewAddress = new Type((found) => (isString(found) && /^https?:\/\/.{0,192}$/.test(found) ? found : null));
const ABOUT = objectOf({ host: text, pid: whole, version: text, view: viewAddress });

const ERROR = objectOf({
  code: text.refine((code) => Object.hasOwn(ERROR_POLICIES, code)),
  ...{ message: text, hint: maybeText, since: whole, retryAt: whole.optional() },
});

const time = objectOf({ text, ms: typeOf((found): found is number => Number.isFinite(found)).nullable() }).nullable();
const INFORMATION = objectOf({
  ...{ id: jobId, name: maybeText, state: maybeText },
  ...{ creationTime: time, submitTime: time, startTime: time, endTime: time },
  tasks: listOf(
    objectOf({
      ...{ id: taskId, name: maybeText, state: maybeText },
      ...{ startTime: time, endTime: time, errorMessage: maybeText },
    }),
  ),
});

const EVENT = objectOf({
  id: text.refine((found) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(found)),
  time: text.refine((found) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(found) && !Number.isNaN(Date.parse(found))),
  ...{ type: oneOf(EVENT_TYPES), count: whole.refine((count) => count >= 1) },
  ...{ jobId: jobId.optional(), jobName: text.optional(), taskId: taskId.optional(), file: liveFile.optional() },
  ...{ generation: whole.optional(), line: whole.optional(), text: text.optional(), reason: text.optional() },
  jobs: listOf(jobId).optional(),
});

/** Columns with another type than text, whole number or null. */
const COLUMNS: Readonly<Record<string, Type<unknown>>> = {
  task_id: taskId,
  file: liveFile,
  copy_mark: text.refine((mark) => /^\d{1,16}$/.test(mark)).nullable(),
  inexact: jsonOf(listOf(objectOf({ start: whole, length: whole }))),
  mismatches: jsonOf(
    listOf(objectOf({ kind: oneOf(MISMATCH_KINDS), at: whole, reason: text, generation: whole, seenAt: whole })),
  ),
  files: jsonOf(listOf(liveFile)),
  information: jsonOf(INFORMATION),
  event: jsonOf(EVENT),
  error: jsonOf(ERROR).nullable(),
};
const isUsual = (found: unknown) =>
  found === null || typeof found === 'string' || (Number.isSafeInteger(found) && Number(found) >= 0);

type FoundCommand = Omit<OpenCommand, 'isApplied' | 'body'> & { readonly body: unknown };

export interface FoundRow {
  readonly jobId: string;
  readonly table: string;
  readonly key: string;
  readonly row: string;
}

export class Border {
  readonly #report: (what: string) => void;
  readonly #reported = new Set<string>();

  constructor(report: (what: string) => void) {
    this.#report = report;
  }

  jobs<Row extends { readonly jobId: string }>(rows: readonly Row[]): (Row & { readonly jobId: JobId })[] {
    return rows.filter((row): row is Row & { readonly jobId: JobId } => this.isJob(row.jobId));
  }

  isJob(found: unknown): found is JobId {
    return jobId.valid(found) !== undefined || this.#refuse('job', String(found), 'malformed id');
  }

  rows<Found extends FoundRow>(found: readonly Found[]): (Found & PortableRow & { readonly row: string })[] {
    return found.flatMap((one) => {
      const row = this.#row(one);
      return typeof row === 'string' ? this.refuse(one, row) : [{ ...one, ...row }];
    });
  }

  refuse({ jobId: job, table, key }: Omit<FoundRow, 'row'>, why: string): [] {
    this.#refuse(`row of job ${job}`, `${table} ${key}`, why);
    return [];
  }

  command({ kind, body, jobId: job, commandId }: FoundCommand): { readonly body: WatchRequest | null } | undefined {
    const command = body === null ? null : WATCH_REQUEST.valid(body);
    const isSound = command !== undefined && (command?.jobId ?? job) === job && (kind !== 'watch' || command !== null);
    if (COMMAND_KINDS.includes(kind) && isSound) return { body: command as WatchRequest | null };
    this.#refuse(`command ${commandId} for job ${job}`, kind, 'malformed, or of an unknown kind');
    return undefined;
  }

  about(found: unknown): Output<typeof ABOUT> {
    return ABOUT.valid(found) ?? { host: '', pid: 0, version: '', view: null };
  }

  rule(found: unknown): WatchMineRow | undefined {
    if (found === undefined) return undefined;
    const rule = RULE.valid(found);
    if (rule === undefined) this.#refuse('rule', 'watch --mine', 'malformed');
    return rule;
  }

  startTime(row: string): string | null {
    const information = objectIn(row)?.['information'];
    return jsonOf(INFORMATION).valid(information)?.startTime?.text ?? null;
  }

  #row(one: FoundRow): { readonly jobId: JobId; readonly table: PortableTable; readonly row: string } | string {
    const { table, key } = one;
    if (!isPortable(table)) return 'unknown kind';
    const columns = objectIn(one.row);
    if (columns === undefined) return 'not an object';
    const values = PORTABLE_KEYS[table].map((name) => columns[name]);
    const isIts = columns['job_id'] === one.jobId && JSON.stringify(values) === JSON.stringify(parsed(key));
    const id = jobId.valid(one.jobId);
    if (!isIts || id === undefined) return 'its columns contradict its key';
    for (const [name, found] of Object.entries(columns)) {
      const type = COLUMNS[name];
      const isSound = type === undefined ? isUsual(found) : type.valid(found) !== undefined;
      if (isSound) continue;
      if (name !== 'error') return `column ${name} is malformed`;
      // The value is for people only, and a newer agent has other codes.
      columns['error'] = null;
    }
    return { jobId: id, table, row: JSON.stringify(columns) };
  }

  #refuse(what: string, which: string, why: string): false {
    const text = printable(`${what} ignored: ${which.slice(0, MAX_SHOWN)}: ${why}`.slice(0, 3 * MAX_SHOWN));
    if (this.#reported.has(text) || this.#reported.size >= MAX_REPORTS) return false;
    this.#reported.add(text);
    this.#report(text);
    return false;
  }
}

const isPortable = (table: string): table is PortableTable => Object.hasOwn(PORTABLE_KEYS, table);

function jsonOf<Value>(type: Type<Value>): Type<Value> {
  return type.after((found) => (isString(found) ? parsed(found) : undefined));
}

function objectIn(text: string): Record<string, unknown> | undefined {
  const found = parsed(text);
  return typeof found === 'object' && found !== null && !Array.isArray(found)
    ? (found as Record<string, unknown>)
    : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
