/**
 * Every way the agent fails, in one table: whether trying again can help, whether a new sign-in can help, and the
 * exit code of a command that ends with it. Only the loops above the work read this table; the work just throws.
 */

/** How a failure is to be answered. */
export interface ErrorPolicy {
  /** Trying the same thing again later may succeed. */
  readonly retry: boolean;
  /** Signing in anew and repeating the call once may succeed. */
  readonly signIn: boolean;
  /** The exit code of a command that ends with this failure (README, "Exit codes"). */
  readonly exitCode: number;
}

/** Exit codes of the command line; documented in the README. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  config: 3,
  locked: 4,
  signIn: 5,
  service: 6,
  notFound: 7,
  local: 8,
  internal: 70,
  interrupted: 130,
} as const;

const policy = (retry: boolean, exitCode: number, signIn = false): ErrorPolicy => ({ retry, signIn, exitCode });

/** The closed set of error codes and what each asks for. */
export const ERROR_POLICIES = {
  // The person
  usage: policy(false, EXIT.usage),
  config: policy(false, EXIT.config),
  // This machine
  locked: policy(false, EXIT.locked),
  permission: policy(true, EXIT.local),
  'disk-full': policy(true, EXIT.local),
  'local-io': policy(true, EXIT.local),
  store: policy(true, EXIT.local),
  // The way to the server
  unreachable: policy(true, EXIT.service),
  tls: policy(true, EXIT.service),
  timeout: policy(true, EXIT.service),
  interrupted: policy(true, EXIT.service),
  // What the server answered
  'rate-limited': policy(true, EXIT.service),
  unavailable: policy(true, EXIT.service),
  redirected: policy(true, EXIT.service),
  'http-status': policy(true, EXIT.service),
  'request-too-long': policy(true, EXIT.service),
  'answer-too-large': policy(true, EXIT.service),
  malformed: policy(true, EXIT.service),
  'unexpected-answer': policy(true, EXIT.service),
  fault: policy(true, EXIT.service),
  stuck: policy(true, EXIT.service),
  'not-found': policy(true, EXIT.notFound),
  // Signing in
  'session-lost': policy(true, EXIT.signIn, true),
  'sign-in-refused': policy(true, EXIT.signIn),
  'secret-unavailable': policy(true, EXIT.signIn),
  // Neither
  'job-unknown': policy(false, EXIT.notFound),
  aborted: policy(false, EXIT.interrupted),
  internal: policy(true, EXIT.internal),
} as const satisfies Record<string, ErrorPolicy>;

/** A code of the table. */
export type ErrorCode = keyof typeof ERROR_POLICIES;

/** What an error may carry besides its message. */
export interface JobtailErrorOptions {
  /** The error that led to this one. Never an object that holds a request, a header or a secret. */
  readonly cause?: unknown;
  /** What the person who reads it can do, as one sentence. */
  readonly hint?: string | undefined;
  /** The server's own wish how long to wait, in milliseconds (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
}

/** A failure with a code of the table. The message says what happened, to what; the hint says what to do. */
export class JobtailError extends Error {
  override readonly name = 'JobtailError';
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: JobtailErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.retryAfterMs = options.retryAfterMs;
  }

  get policy(): ErrorPolicy {
    return ERROR_POLICIES[this.code];
  }
}

/** Any thrown value as a JobtailError: itself, a known system error, or `internal`. */
export function asJobtailError(thrown: unknown): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  if (thrown instanceof Error && thrown.name === 'AbortError') return new JobtailError('aborted', 'it was stopped');
  const code = systemCode(thrown);
  if (code !== undefined) return localError(thrown as NodeJS.ErrnoException, code);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new JobtailError('internal', message, {
    cause: thrown,
    hint: 'this is a defect of the program; please report it with the lines above',
  });
}

function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = (thrown as NodeJS.ErrnoException).code;
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) && 'syscall' in thrown ? code : undefined;
}

function localError(error: NodeJS.ErrnoException, code: string): JobtailError {
  const where = error.path ?? 'a local file';
  const said = `${error.syscall ?? 'call'} ${code}`;
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new JobtailError('disk-full', `no room left for ${where} (${said})`, {
        cause: error,
        hint: 'free some space; the agent waits and goes on by itself',
      });
    case 'EROFS':
      return new JobtailError('permission', `${where} is on a file system that is read-only (${said})`, {
        cause: error,
        hint: 'find out why (a fault of the disk makes it so), and mount it for writing; the agent goes on by itself',
      });
    case 'EACCES':
    case 'EPERM':
      return new JobtailError('permission', `no right to use ${where} (${said})`, {
        cause: error,
        hint: `give the user of the agent the right to write ${where}`,
      });
    default:
      return new JobtailError('local-io', `${where} cannot be used (${said})`, {
        cause: error,
        hint: 'look at the disk, the mount and the path',
      });
  }
}
