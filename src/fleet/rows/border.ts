/** Parses rows of the fleet's database. A malformed or unknown one is reported once, and ignored. */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { ERROR_POLICIES } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import { MISMATCH_KINDS } from '../../mismatch.ts';
import { EVENT_TYPES } from '../../notification.ts';
import { printable } from '../../printable.ts';
import { isQuickPattern } from '../../quick-pattern.ts';
import { PORTABLE_KEYS, type PortableRow, type PortableTable } from '../../store/portable-rows.ts';
import type { WatchMineRow, WatchRequest } from '../../store/rows.ts';

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

const text = v.string();
const maybeText = v.nullable(text);
const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** Paths are built from it, so only canonical decimal text is accepted. */
const jobId = v.custom<JobId>((found) => typeof found === 'string' && parseJobId(found) === found);
const taskId = v.custom<TaskId>((found) => typeof found === 'string' && parseTaskId(found) === found);
const liveFile = v.picklist(LIVE_FILE_NAMES);
const globs = v.array(v.pipe(text, v.nonEmpty(), v.check(isQuickPattern)));

const WATCH_REQUEST = v.object({
  jobId,
  tasks: v.nullable(v.array(taskId)),
  files: v.pipe(v.array(liveFile), v.nonEmpty()),
  results: v.boolean(),
  settleAfterMs: v.nullable(whole),
  stallAfterMs: v.nullish(whole),
  seenState: v.nullish(text),
  source: v.picklist(['config', 'command', 'mine']),
});

const RULE = v.object({
  source: v.literal('command'),
  since: whole,
  maxAgeMs: whole,
  include: v.pipe(globs, v.nonEmpty()),
  exclude: globs,
  maxJobs: v.pipe(whole, v.minValue(1), v.maxValue(100_000)),
});

/** Only shown, never requested. Older agents have none. */
const viewAddress = v.fallback(v.nullable(v.pipe(text, v.maxLength(200), v.regex(/^https?:\/\//))), null);
const ABOUT = v.object({ host: text, pid: whole, version: text, view: viewAddress });

const ERROR = v.object({
  code: v.picklist(Object.keys(ERROR_POLICIES)),
  message: text,
  hint: maybeText,
  since: whole,
  retryAt: v.optional(whole),
});

const time = v.nullable(v.object({ text, ms: v.nullable(v.pipe(v.number(), v.finite())) }));
const INFORMATION = v.object({
  id: jobId,
  name: maybeText,
  state: maybeText,
  creationTime: time,
  submitTime: time,
  startTime: time,
  endTime: time,
  tasks: v.array(
    v.object({
      id: taskId,
      name: maybeText,
      state: maybeText,
      startTime: time,
      endTime: time,
      errorMessage: maybeText,
    }),
  ),
});

const EVENT = v.object({
  id: v.pipe(text, v.uuid()),
  time: v.pipe(text, v.isoTimestamp(), v.endsWith('Z')),
  type: v.picklist(EVENT_TYPES),
  count: v.pipe(whole, v.minValue(1)),
  ...v.partial(v.object({ jobId, jobName: text, taskId, file: liveFile, jobs: v.array(jobId) })).entries,
  ...v.partial(v.object({ generation: whole, line: whole, text, reason: text })).entries,
});

/** Columns with another type than text, whole number or null. */
const COLUMNS: Readonly<Record<string, v.GenericSchema>> = {
  task_id: taskId,
  file: liveFile,
  copy_mark: v.nullable(v.pipe(text, v.regex(/^\d{1,16}$/))),
  // Of an older version.
  inexact: jsonOf(v.array(v.object({ start: whole, length: whole }))),
  mismatches: jsonOf(
    v.array(v.object({ kind: v.picklist(MISMATCH_KINDS), at: whole, reason: text, generation: whole, seenAt: whole })),
  ),
  files: jsonOf(v.array(liveFile)),
  arriving: jsonOf(v.array(v.tuple([text, whole]))),
  information: jsonOf(INFORMATION),
  event: jsonOf(EVENT),
  error: v.nullable(jsonOf(ERROR)),
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

/** PostgreSQL refuses rows of an index above 2,704 bytes, and names of results may be longer. */
const MAX_KEY_BYTES = 2_000;

/** The key of a row in the database: of a long one its checksum. */
export const fleetKey = (key: string) =>
  Buffer.byteLength(key) > MAX_KEY_BYTES ? createHash('sha256').update(key).digest('hex') : key;

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
    return v.is(jobId, found) || this.#refuse('job', String(found), 'malformed id');
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
    const command = body === null ? null : dataOf(WATCH_REQUEST, body);
    const isSound = command !== undefined && (command?.jobId ?? job) === job && (kind !== 'watch' || command !== null);
    if (COMMAND_KINDS.includes(kind) && isSound) return { body: command as WatchRequest | null };
    this.#refuse(`command ${commandId} for job ${job}`, kind, 'malformed, or of an unknown kind');
    return undefined;
  }

  about(found: unknown): v.InferOutput<typeof ABOUT> {
    return dataOf(ABOUT, found) ?? { host: '', pid: 0, version: '', view: null };
  }

  rule(found: unknown): WatchMineRow | undefined {
    if (found === undefined) return undefined;
    const data = dataOf(RULE, found);
    if (data === undefined) this.#refuse('rule', 'watch --mine', 'malformed');
    return data;
  }

  startTime(row: string): string | null {
    const information = objectIn(row)?.['information'];
    return dataOf(jsonOf(INFORMATION), information)?.startTime?.text ?? null;
  }

  #row(one: FoundRow): { readonly jobId: JobId; readonly table: PortableTable; readonly row: string } | string {
    const { table, key } = one;
    if (!isPortable(table)) return 'unknown kind';
    const columns = objectIn(one.row);
    if (columns === undefined) return 'not an object';
    const values = PORTABLE_KEYS[table].map((name) => columns[name]);
    const isIts = columns['job_id'] === one.jobId && fleetKey(JSON.stringify(values)) === key;
    const id = dataOf(jobId, one.jobId);
    if (!isIts || id === undefined) return 'its columns contradict its key';
    for (const [name, found] of Object.entries(columns)) {
      const column = COLUMNS[name];
      const isSound = column === undefined ? isUsual(found) : v.is(column, found);
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

function jsonOf<T>(schema: v.GenericSchema<unknown, T>) {
  return v.pipe(v.string(), v.transform(parsed), schema);
}

function dataOf<T>(schema: v.GenericSchema<unknown, T>, found: unknown): T | undefined {
  const { success, output } = v.safeParse(schema, found);
  return success ? output : undefined;
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
