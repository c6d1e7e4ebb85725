/** Faults that tests and people add while the sandbox runs: rules that match calls and spoil their answers. */
import { JobtailError } from '../src/errors.ts';
import type { LiveFileName } from '../src/job.ts';
import type { Operation } from '../src/operations.ts';

/** Which calls a rule applies to: all that it names must fit. */
interface FaultScope {
  /** One operation; every operation but the sign-ins when left out. `SignIn` is all of these. */
  readonly operation?: Operation | 'SignIn';
  readonly jobId?: string;
  /** Calls that request this task, perhaps among others: a poisoned file. */
  readonly taskId?: string;
  /** A live file by its name, or for DownloadFileFromCluster the name as listed. */
  readonly file?: LiveFileName | (string & {});
  /** It applies to so many calls and is then spent; for ever when left out. */
  readonly times?: number;
}

/** What happens to a call. */
export type FaultEffect =
  /**
   * A SOAP fault with HTTP 500; over REST what its release makes of a failure outside; for a sign-in a 400 with the
   * text.
   */
  | { readonly kind: 'fault'; readonly text?: string }
  /** Any status, header lines and body instead of the answer. */
  | {
      readonly kind: 'http';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** Any text as the body of a response; status 200 by default. */
  | {
      readonly kind: 'body';
      readonly body: string;
      readonly contentType?: string;
      readonly status?: number;
    }
  /** The ordinary answer, later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The header lines of a good answer, then nothing. */
  | { readonly kind: 'stall' }
  /** Never any answer. */
  | { readonly kind: 'hang' }
  /** The connection is reset before the answer, or after so many bytes of its body. */
  | { readonly kind: 'reset'; readonly afterBytes?: number }
  /** The ordinary answer in small pieces. */
  | { readonly kind: 'drip'; readonly bytes: number; readonly everyMs: number }
  /** The body ends after so many bytes; the HTTP message is complete. */
  | { readonly kind: 'truncate'; readonly afterBytes: number }
  /** Files look as if they had only so many bytes (docs/dev/servers.md 1.6: stale sizes). */
  | { readonly kind: 'staleSize'; readonly bytes: number };

export type FaultRule = FaultScope & FaultEffect;

/** What the rules look at. */
export interface FaultSubject {
  readonly operation: Operation | 'SignIn';
  readonly jobId?: string;
  /** The files that the call requests. */
  readonly files?: readonly SubjectFile[];
}

interface SubjectFile {
  readonly taskId?: string;
  readonly file: string;
}

const KINDS = ['fault', 'http', 'body', 'delay', 'stall', 'hang', 'reset', 'drip', 'truncate', 'staleSize'];

/** A rule that was added, and how often it applied. */
interface Entry {
  readonly rule: FaultRule;
  applied: number;
}

export class Faults {
  #entries: Entry[] = [];

  /** Adds a rule; rules apply in the order in which they were added. An unknown kind is a `usage` error. */
  add(rule: FaultRule): void {
    if (!KINDS.includes(rule.kind)) throw new JobtailError('usage', `the sandbox has no fault "${rule.kind}"`);
    this.#entries.push({ rule, applied: 0 });
  }

  /** Takes all rules back. */
  clear(): void {
    this.#entries = [];
  }

  get list(): readonly Entry[] {
    return this.#entries;
  }

  /** The rules that apply to a call; counts it for each of them. */
  take(subject: FaultSubject): readonly FaultRule[] {
    const taken: FaultRule[] = [];
    for (const entry of this.#entries) {
      const { rule } = entry;
      if (!appliesTo(rule, subject) || entry.applied >= (rule.times ?? Number.POSITIVE_INFINITY)) continue;
      entry.applied += 1;
      taken.push(rule);
    }
    return taken;
  }
}

/** The size in bytes that taken rules make a file appear to have; undefined if it appears as it is. */
export function staleBytes(rules: readonly FaultRule[], file: SubjectFile): number | undefined {
  const sizes = rules.flatMap((rule) => (rule.kind === 'staleSize' && namesFile(rule, file) ? [rule.bytes] : []));
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}

function appliesTo(rule: FaultRule, { operation, jobId, files = [] }: FaultSubject): boolean {
  if (rule.operation === undefined ? operation === 'SignIn' : rule.operation !== operation) return false;
  if (rule.jobId !== undefined && rule.jobId !== jobId) return false;
  if (rule.taskId === undefined && rule.file === undefined) return true;
  return files.some((file) => namesFile(rule, file));
}

function namesFile(rule: FaultRule, { taskId, file }: SubjectFile): boolean {
  if (rule.taskId !== undefined && rule.taskId !== taskId) return false;
  return rule.file === undefined || withoutSlashes(rule.file) === withoutSlashes(file);
}

/** One form for the three ways of writing a listed name. */
function withoutSlashes(name: string): string {
  return name.replace(/^\/+/, '').replace(/\/{2,}/g, '/');
}
