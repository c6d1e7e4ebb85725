/** The messages that the server pushes to the page. */
import type { LiveFileName } from '../../job.ts';
import type { JobAsReported, JobTime, ShownTask } from '../../job-information.ts';
import type { ShownSearch, shownJobService } from '../../store/jobs.ts';
import type { shownSync } from '../../store/results.ts';
import type { JobSource, ResultCounts, ResultSyncRow, WatchState } from '../../store/rows.ts';
import type { ShownError } from './addresses.ts';

export type { JobTime as ReportedTime, ResultCounts };

/** The query of `api/events`: for something else, the page opens another stream. A hidden page closes its own. */
export interface StreamTopics {
  /** `jobs=1`: all jobs, as `jobs`. */
  readonly jobs?: '1';
  /** `job=501`, up to 8 of them: a job with its files, as `job` and `files`. */
  readonly job?: readonly string[];
  /** `file=501/9001/stdout`, up to 32 of them: how long its mirror is, as `length`, within 200 ms of each append. */
  readonly file?: readonly string[];
  /** `service=1`: the service and the agent, as `service` and `figures`. */
  readonly service?: '1';
}

/** By the name of the event. After the stream opens, everything that it looks at comes once, whole; then what changed. */
export interface Events {
  readonly hello: Hello;
  readonly agent: AgentState;
  /** Null of an agent without a fleet. */
  readonly fleet: FleetState | null;
  readonly jobs: JobsChange;
  readonly job: JobDetail;
  readonly files: FilesChange;
  /** Such a job was never followed. */
  readonly missing: { readonly jobId: string };
  readonly length: FileLength;
  readonly service: ServiceState;
  /** At first all, the oldest first, then newer ones; null where this server does not run within an agent. */
  readonly figures: readonly Figure[] | null;
  /** Why the server cannot report, such as a store that cannot be read; null when it is over. */
  readonly stateError: { readonly message: string; readonly hint: string | null } | null;
}

/** A line of the stream. */
export type EventLine = { [Name in keyof Events]: readonly [name: Name, data: Events[Name]] }[keyof Events];

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
  /** Why the service answers no job; null while it answers one of them. */
  readonly serviceError: ShownError | null;
  /** The last poll of any job, if no agent runs. */
  readonly lastPolledAt: number | null;
}

/** The agents that share the jobs. All texts are those of a shared database. */
export interface FleetState {
  /** The agent of this view. */
  readonly name: string;
  readonly agents: readonly FleetAgent[];
  readonly waitingJobs: number;
  /** Why its database cannot be read: what is shown of other agents is as old. */
  readonly error: { readonly message: string; readonly hint: string | null; readonly since: number } | null;
}

export interface FleetAgent {
  readonly name: string;
  readonly state: 'alive' | 'draining' | 'gone';
  readonly jobs: number;
  readonly maxJobs: number;
  readonly pollAgeMs: number | null;
  readonly callsLastMinute: number;
  /** Why it is not ready; null if it is. */
  readonly lacks: string | null;
  /** Jobs that it owns and does not follow. */
  readonly notFollowed: number;
  readonly seenAt: number;
  readonly host: string;
  readonly version: string;
  /** The address of its view; null if other machines have none. */
  readonly view: string | null;
}

/** What changed of the jobs: `whole` if these are all there are. */
interface JobsChange {
  readonly whole: boolean;
  readonly jobs: readonly JobSummary[];
}

export interface PlaceOfJob {
  /** The agent of the fleet that follows it; null while it waits for one, and without a fleet. */
  readonly owner: string | null;
  /** Its bytes are on the machine of its owner, and in no mirror directory of this one. */
  readonly isElsewhere: boolean;
}

/** What shows how a job does. */
export interface JobCondition {
  readonly jobState: string | null;
  readonly state: WatchState;
  readonly stalledAt: number | null;
  /** Of the job or of one of its files. */
  readonly firstError: ShownError | null;
}

/** A key that `agent status --json` has, too, means the same there. */
export interface JobSummary extends PlaceOfJob, JobCondition, JobAsReported {
  readonly jobId: string;
  /** Since when the agent sees its state. */
  readonly jobStateSince: number | null;
  readonly source: JobSource;
  readonly grownAt: number | null;
  /** `hint`: why no task is found, and what to do. */
  readonly tasks: ShownSearch;
  readonly liveBytes: number;
  /** The last poll that was answered; null while none was. */
  readonly polledAt: number | null;
  /** What changed last: growth, a state, an error. */
  readonly changedAt: number;
  readonly hasResults: boolean;
  readonly results: ResultCounts;
}

export interface JobDetail extends JobSummary {
  readonly tasks: ShownSearch & { readonly reported: readonly ShownTask[] };
  /** Why the job is not proven; null while it is followed. */
  readonly unproven: readonly string[] | null;
  /** The last sync of results, which runs while `endedAt` is null, and the files that it transfers. */
  readonly results: ResultCounts & {
    readonly lastSync: ReturnType<typeof shownSync>;
    readonly arriving: ResultSyncRow['arriving'];
  };
}

/** What changed of the live files of a job: `whole` if these are all there are. */
interface FilesChange {
  readonly jobId: string;
  readonly whole: boolean;
  readonly files: readonly FileState[];
}

export interface FileState {
  readonly taskId: string;
  readonly file: LiveFileName;
  readonly generation: number;
  readonly version: string;
  readonly grownAt: number | null;
  /** Committed ones. */
  readonly bytes: number;
  /** Whether the last comparison with the raw bytes of the server was equal, and why the file is not proven. */
  readonly verified: boolean;
  readonly unproven: string | null;
  readonly error: ShownError | null;
}

/** A mirror grew, or has another version; fewer bytes of one version: what was after them is taken back. */
export interface FileLength {
  /** `501/9001/stdout`. */
  readonly file: string;
  readonly version: string;
  readonly bytes: number;
}

/** `concurrency`, `requestsPerMinute`: calls that the configuration allows. */
export interface ServiceState {
  readonly address: string;
  readonly protocol: 'soap' | 'rest';
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  /** The last request to the job service; null without one. */
  readonly jobService: ReturnType<typeof shownJobService> | null;
}

/** The agent's work in the seconds before a moment. */
export interface Figure {
  readonly at: number;
  /** Appended to mirrors, a second. */
  readonly bytes: number;
  /** A minute, by operation. */
  readonly calls: Readonly<Record<string, number>>;
  /** Calls and sign-ins a minute that failed, by what the service does, in words; not those that it answered with a no. */
  readonly failures: Readonly<Record<string, number>>;
}
