/** What is pushed: what a page looks at, and what it is told of it. */
import type { FileLength, FilesChange } from './files.ts';
import type { JobDetail, JobsChange } from './jobs.ts';
import type { Figure, Figures, ServiceState } from './service.ts';

/**
 * The query of `api/events`. To look at something else, the page opens another stream and closes this one; a hidden page
 * closes its stream. Nothing is watched that no stream names.
 */
export interface Looks {
  /** `jobs=1`: all jobs, as `jobs`. */
  readonly jobs?: '1';
  /** `job=501`, up to 8 of them: a job with its files, as `job` and `files`. */
  readonly job?: readonly string[];
  /** `file=501/9001/stdout`, up to 32 of them: how long its mirror is, as `length`, within 200 ms of each append. */
  readonly file?: readonly string[];
  /** `service=1`: the service and the agent, as `service`, `figures` and `figure`. */
  readonly service?: '1';
}

/**
 * By the name of the event; `data` is one line of JSON. After the stream opens, everything that it looks at comes once,
 * whole; then what changed. EventSource opens a stream that broke again by itself, and everything comes once again.
 */
export interface Events {
  readonly hello: Hello;
  readonly agent: AgentState;
  readonly jobs: JobsChange;
  readonly job: JobDetail;
  readonly files: FilesChange;
  /** Such a job was never followed. */
  readonly missing: { readonly jobId: string };
  readonly length: FileLength;
  readonly service: ServiceState;
  readonly figures: Figures;
  readonly figure: Figure;
  /** What keeps the server from telling, as the store that cannot be read; null when it is over. */
  readonly trouble: { readonly message: string; readonly hint: string | null } | null;
}

export interface Hello {
  /** Of the program. Another one than before: the page loads itself again. */
  readonly program: string;
  /** The server's clock. */
  readonly now: number;
}

export interface AgentState {
  /** False: nothing new comes until there is one (`agent run`). */
  readonly running: boolean;
  readonly pid: number | null;
  /** Jobs of the user that are followed without being named; null if none are. */
  readonly watchMine: { readonly following: number; readonly waiting: number } | null;
}
