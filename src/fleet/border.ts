/** Parses rows of the fleet's database. A malformed or unknown one is reported once, and ignored. */
import * as z from 'zod';
import { ERROR_POLICIES } from '../errors.ts';
import { type JobId, LIVE_FILE_NAMES, parseJobId, parseTaskId } from '../job.ts';
import { MISMATCH_KINDS } from '../mismatch.ts';
import { EVENT_TYPES } from '../notification.ts';
import { printable } from '../printable.ts';
import { isQuickPattern } from '../quick-pattern.ts';
import { PORTABLE_KEYS, type PortableRow, type PortableTable } from '../store/portable-rows.ts';
import type { WatchMineRow, WatchRequest } from '../store/rows.ts';

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

const whole = z.int().min(0);
/** Paths are built from it, so only canonical decimal text is accepted. */
const jobId = z.custom<JobId>((found) => typeof found === 'string' && parseJobId(found) === found);
const taskId = z.string().refine((found) => parseTaskId(found) === found);
const liveFile = z.enum(LIVE_FILE_NAMES);
const maybeText = z.string().nullable();
const glob = z.string().min(1).refine(isQuickPattern);

const WATCH_REQUEST = z.object({
  jobId,
  tasks: z.array(taskId).nullable(),
  files: z.array(liveFile).min(1),
  results: z.boolean(),
  settleAfterMs: whole.nullable(),
  stallAfterMs: whole.nullable().optional(),
  source: z.enum(['config', 'command', 'mine']),
});

const RULE = z.object({
  ...{ source: z.literal('command'), since: whole },
  ...{ include: z.array(glob).min(1), exclude: z.array(glob), maxAgeMs: whole, maxJobs: whole.min(1).max(100_000) },
});

/** Only shown, never requested. Older agents have none. */
const viewAddress = z
  .string()
  .max(200)
  .regex(/^https?:\/\//)
  .nullable()
  .catch(null);
const ABOUT = z.object({ host: z.string(), pid: whole, version: z.string(), view: viewAddress });

const ERROR = z.object({
  code: z.string().refine((code) => Object.hasOwn(ERROR_POLICIES, code)),
  ...{ message: z.string(), hint: maybeText, since: whole, retryAt: whole.optional() },
});

const time = z.object({ text: z.string(), ms: z.number().nullable() }).nullable();
const INFORMATION = z.object({
  ...{ id: jobId, name: maybeText, state: maybeText },
  ...{ creationTime: time, submitTime: time, startTime: time, endTime: time },
  tasks: z.array(
    z.object({
      ...{ id: taskId, name: maybeText, state: maybeText },
      ...{ startTime: time, endTime: time, errorMessage: maybeText },
    }),
  ),
});

const EVENT = z.object({
  ...{ id: z.guid(), type: z.enum(EVENT_TYPES), time: z.iso.datetime(), count: whole.min(1) },
  ...{ jobId: jobId.optional(), jobName: z.string().optional(), taskId: taskId.optional(), file: liveFile.optional() },
  ...{
    generation: whole.optional(),
    line: whole.optional(),
    text: z.string().optional(),
    reason: z.string().optional(),
  },
  jobs: z.array(jobId).optional(),
});

/** Columns with another type than text, whole number or null. */
const COLUMNS: Readonly<Record<string, z.ZodType>> = {
  task_id: taskId,
  file: liveFile,
  copy_mark: z
    .string()
    .regex(/^\d{1,16}$/)
    .nullable(),
  inexact: jsonOf(z.array(z.object({ start: whole, length: whole }))),
  mismatches: jsonOf(
    z.array(
      z.object({ kind: z.enum(MISMATCH_KINDS), at: whole, reason: z.string(), generation: whole, seenAt: whole }),
    ),
  ),
  files: jsonOf(z.array(liveFile)),
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
    return jobId.safeParse(found).success || this.#refuse('job', String(found), 'malformed id');
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
    const command = body === null ? null : WATCH_REQUEST.safeParse(body).data;
    const isSound = command !== undefined && (command?.jobId ?? job) === job && (kind !== 'watch' || command !== null);
    if (COMMAND_KINDS.includes(kind) && isSound) return { body: command as WatchRequest | null };
    this.#refuse(`command ${commandId} for job ${job}`, kind, 'malformed, or of an unknown kind');
    return undefined;
  }

  about(found: unknown): z.infer<typeof ABOUT> {
    return ABOUT.safeParse(found).data ?? { host: '', pid: 0, version: '', view: null };
  }

  rule(found: unknown): WatchMineRow | undefined {
    if (found === undefined) return undefined;
    const { data } = RULE.safeParse(found);
    if (data === undefined) this.#refuse('rule', 'watch --mine', 'malformed');
    return data;
  }

  startTime(row: string): string | null {
    const information = objectIn(row)?.['information'];
    return jsonOf(INFORMATION).safeParse(information).data?.startTime?.text ?? null;
  }

  #row(one: FoundRow): { readonly jobId: JobId; readonly table: PortableTable; readonly row: string } | string {
    const { table, key } = one;
    if (!isPortable(table)) return 'unknown kind';
    const columns = objectIn(one.row);
    if (columns === undefined) return 'not an object';
    const values = PORTABLE_KEYS[table].map((name) => columns[name]);
    const isIts = columns['job_id'] === one.jobId && JSON.stringify(values) === JSON.stringify(parsed(key));
    const id = jobId.safeParse(one.jobId).data;
    if (!isIts || id === undefined) return 'its columns contradict its key';
    for (const [name, found] of Object.entries(columns)) {
      const isSound = COLUMNS[name]?.safeParse(found).success ?? isUsual(found);
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

function jsonOf<T>(schema: z.ZodType<T>) {
  return z
    .string()
    .transform((text) => parsed(text))
    .pipe(schema as z.ZodType<T, unknown>);
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
