/** The error codes of the agent. The work throws; the caller that retries, skips a file or ends reads the policy. */
export interface ErrorPolicy {
  /** The exit code of a command that ends with this failure (docs/json.md, "Exit codes"). */
  readonly exitCode: number;
  /** Logged as an error instead of a warning: data are at risk, or the program has a defect. */
  readonly isAlarm: boolean;
  /** Whether it is one failure of the service, for all jobs. */
  readonly isOfService: boolean;
  /** Ends the sentence "the service ..." if no job can be followed; else null. */
  readonly outage: string | null;
  /** Whether it clears without an operator. */
  readonly passes: boolean;
  /** Whether one of several files in a call, or their number, may be the cause. */
  readonly isDivisible: boolean;
  /** Whether the service certainly did nothing for the request. */
  readonly nothingDone: boolean;
  readonly endsPoll: boolean;
  /** Whether the service will refuse this request again; others may succeed. */
  readonly isRefusal: boolean;
  /** Whether the next result file may succeed; `perhaps`: unless several in a row fail. */
  readonly ofOneFile: 'yes' | 'perhaps' | 'no';
}

/** Exit codes; documented in docs/json.md. */
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
  jobFailed: 10,
  jobCanceled: 11,
  timeIsUp: 12,
  internal: 70,
  interrupted: 130,
  terminated: 143,
  /** As a program that SIGPIPE ends. */
  unread: 141,
} as const;

const USUAL: ErrorPolicy = {
  exitCode: EXIT.failed,
  isAlarm: false,
  isOfService: false,
  outage: null,
  passes: false,
  isDivisible: false,
  nothingDone: false,
  endsPoll: false,
  isRefusal: false,
  ofOneFile: 'no',
};

const policy = (exitCode: number, unusual: Partial<ErrorPolicy> = {}): ErrorPolicy => ({
  ...USUAL,
  exitCode,
  ...unusual,
});

const service = (outage: string, unusual: Partial<ErrorPolicy> = {}): ErrorPolicy =>
  policy(EXIT.service, { isOfService: true, outage, ...unusual });

const signIn = (outage: string): ErrorPolicy => service(outage, { exitCode: EXIT.signIn, nothingDone: true });

const answer = (unusual: Partial<ErrorPolicy> = {}): ErrorPolicy =>
  policy(EXIT.service, { isDivisible: true, ofOneFile: 'yes', ...unusual });

const SOMETHING_ELSE = 'sends an unknown response';

export const ERROR_POLICIES = {
  // The person
  usage: policy(EXIT.usage, { ofOneFile: 'yes' }),
  config: policy(EXIT.config),
  // This machine
  locked: policy(EXIT.locked),
  permission: policy(EXIT.local, { isAlarm: true, ofOneFile: 'yes' }),
  'disk-full': policy(EXIT.local, { isAlarm: true }),
  'local-io': policy(EXIT.local, { ofOneFile: 'yes' }),
  store: policy(EXIT.local, { isAlarm: true, endsPoll: true }),
  // The fleet
  fleet: policy(EXIT.local, { isAlarm: true, passes: true }),
  superseded: policy(EXIT.failed, { passes: true, endsPoll: true }),
  // The way to the server
  unreachable: service('cannot be reached', { passes: true, nothingDone: true }),
  tls: service('cannot be trusted (TLS)', { nothingDone: true }),
  timeout: service('does not answer', { passes: true, ofOneFile: 'perhaps' }),
  interrupted: service('breaks connections', { passes: true, ofOneFile: 'perhaps' }),
  // What the server answered
  'rate-limited': service('allows no more calls for now', { passes: true, nothingDone: true }),
  unavailable: service('is not available', { passes: true, ofOneFile: 'perhaps' }),
  redirected: policy(EXIT.service, { outage: 'redirects' }),
  'http-status': answer({ outage: 'answers with an error', ofOneFile: 'perhaps' }),
  'request-too-long': answer({ ofOneFile: 'no' }),
  'answer-too-large': answer(),
  malformed: answer({ outage: SOMETHING_ELSE }),
  'unexpected-answer': answer({ outage: SOMETHING_ELSE }),
  fault: answer({ nothingDone: true, isRefusal: true }),
  stuck: policy(EXIT.service),
  'not-found': policy(EXIT.notFound, { nothingDone: true, isRefusal: true, ofOneFile: 'yes' }),
  // Signing in
  'session-lost': policy(EXIT.signIn, { nothingDone: true }),
  'sign-in-refused': signIn('refuses the sign-in'),
  'secret-unavailable': signIn('cannot be signed in to: the secret cannot be read'),
  // Neither
  'job-unknown': policy(EXIT.notFound),
  aborted: policy(EXIT.interrupted, { endsPoll: true }),
  internal: policy(EXIT.internal, { isAlarm: true, ofOneFile: 'perhaps' }),
} as const satisfies Record<string, ErrorPolicy>;

export type ErrorCode = keyof typeof ERROR_POLICIES;

interface JobtailErrorOptions {
  /** Never an object with a request, a header or a secret. */
  readonly cause?: unknown;
  readonly hint?: string | undefined;
  /** The pause that the server requests (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
  readonly inPlace?: NoFile | undefined;
}

/**
 * What the server reports in the place of a requested file: a path that leads nowhere, or a file without the right to
 * read. unclear: a directory, or a file that the disk of the cluster fails to read.
 */
export type NoFile = 'unclear' | 'nothing' | 'unreadable';

/** The message names what happened, and to what; the hint is an instruction. */
export class JobtailError extends Error {
  override readonly name = 'JobtailError';
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** Of a refused file: what is in its place, if the server reports that. */
  readonly inPlace: NoFile | undefined;

  constructor(code: ErrorCode, message: string, options: JobtailErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.retryAfterMs = options.retryAfterMs;
    this.inPlace = options.inPlace;
  }

  get policy(): ErrorPolicy {
    return ERROR_POLICIES[this.code];
  }
}

/** An error as the answer to a request, in JSON. */
export interface RequestRefusal {
  readonly error: string;
  readonly code?: string;
  readonly hint?: string | undefined;
}

export function refusalOf({ message, code, hint }: JobtailError): RequestRefusal {
  return { error: message, code, hint };
}

/** The host of a direct transfer refuses the key that the service gave for it. */
export class KeyRefused extends JobtailError {
  constructor(host: string) {
    super('unexpected-answer', `${host} refused the temporary key`, {
      hint: 'it is tried again later; if the error persists, report to the operator of the service that its keys are refused',
    });
  }
}

export const stopped = () => new JobtailError('aborted', 'it was stopped');

/** Any thrown value as a JobtailError: itself, a known system error, or `internal`. */
export function asJobtailError(thrown: unknown): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  if (thrown instanceof Error && thrown.name === 'AbortError') return stopped();
  const code = systemCode(thrown);
  if (code !== undefined) return localError(thrown as NodeJS.ErrnoException, code);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new JobtailError('internal', message, {
    cause: thrown,
    hint: 'report this defect of the program, with the lines above',
  });
}

function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = (thrown as NodeJS.ErrnoException).code;
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) && 'syscall' in thrown ? code : undefined;
}

/** Ends a hint of the agent; a command that ended does not go on by itself. */
export const AGENT_CONTINUES = '; the agent continues by itself';

/** Errors of the system with a hint; the others are `local-io`. */
const LOCAL_ERRORS: Readonly<Record<string, { readonly code: ErrorCode; readonly hint: (path: string) => string }>> = {
  ENOSPC: { code: 'disk-full', hint: () => `free some space, or inodes (df -i)${AGENT_CONTINUES}` },
  EDQUOT: { code: 'disk-full', hint: () => `remove files, or raise the quota${AGENT_CONTINUES}` },
  EROFS: {
    code: 'permission',
    hint: () => 'see why in the log of the kernel (dmesg: a failing disk?), then mount the file system for writing',
  },
  EACCES: { code: 'permission', hint: (path) => `give the user who runs this the right to open ${path}` },
  EPERM: { code: 'permission', hint: (path) => `give the user who runs this the right to open ${path}` },
  EFBIG: {
    code: 'local-io',
    hint: () => 'raise the limit of file sizes (ulimit -f, LimitFSIZE of the unit); FAT allows no file above 4 GiB',
  },
  ENAMETOOLONG: { code: 'local-io', hint: () => 'use a shorter directory, or a file system with longer names' },
  EIO: { code: 'local-io', hint: () => 'see the log of the kernel (dmesg): the disk or its server failed' },
  ESTALE: { code: 'local-io', hint: () => 'mount it again: the server of the file system has this file no longer' },
  ENOENT: { code: 'local-io', hint: () => 'see whether its file system is mounted, and whether the path is right' },
  EEXIST: { code: 'local-io', hint: (path) => `move ${path} away` },
  ENOTDIR: { code: 'local-io', hint: () => 'move away the file that stands in the place of a directory' },
  EADDRINUSE: { code: 'local-io', hint: () => 'another program listens there: choose another address or port' },
  EMFILE: { code: 'local-io', hint: () => 'raise the limit of open files (LimitNOFILE of the unit, or ulimit -n)' },
};

/** Of an error of `listen` or `connect`. */
function addressOf(error: NodeJS.ErrnoException & { readonly address?: string; readonly port?: number }) {
  return error.address === undefined
    ? undefined
    : [error.address, ...(error.port === undefined ? [] : [error.port])].join(':');
}

function localError(error: NodeJS.ErrnoException, code: string): JobtailError {
  const { path: file, syscall = 'call' } = error;
  // Node.js writes `ENOSPC: no space left on device, open '/x'`.
  const where = file ?? addressOf(error);
  const words = /\bE[A-Z0-9]+: ([^,]+)/.exec(error.message)?.[1]?.replace(` ${where}`, '') ?? code;
  const known = LOCAL_ERRORS[code];
  const what = where === undefined ? words : `${words}: ${where}`;
  return new JobtailError(known?.code ?? 'local-io', `${what} (${syscall} ${code})`, {
    cause: error,
    hint: known?.hint(where ?? 'the file') ?? 'see the log of the kernel (dmesg), and what is there',
  });
}
