/** The service, the agent, and their figures over the time. */
import type { Trouble } from './addresses.ts';

export interface ServiceState {
  /** Of the file-transfer service. */
  readonly address: string;
  readonly protocol: 'soap' | 'rest';
  /** What was learned of the server, by the name of the habit. */
  readonly learned: readonly { readonly name: string; readonly value: string }[];
  /** The last look at the service that tells of jobs; null where there is none. */
  readonly jobService: {
    readonly lookedAt: number | null;
    readonly nextLookAt: number | null;
    readonly failures: number;
    readonly error: Trouble | null;
    readonly listed: number | null;
  } | null;
  /** Calls at a time and a minute that the configuration allows. */
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  readonly disks: readonly Disk[];
  /** What only the agent itself knows is told: this server runs within it. */
  readonly withinAgent: boolean;
}

export interface Disk {
  readonly name: 'mirror' | 'state';
  readonly directory: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Since the start, the oldest first; the older they are the further apart, so that there are at most 1,440. */
export interface Figures {
  readonly startedAt: number;
  readonly figures: readonly Figure[];
}

/**
 * What was so at one moment, each ten seconds. The counts of `calls` are since the figure before (all of them together
 * where older figures were thinned).
 */
export interface Figure {
  readonly at: number;
  /** Seconds that the counts are of. */
  readonly seconds: number;
  readonly liveBytes: number;
  readonly watchedJobs: number;
  readonly failingJobs: number;
  readonly failingFiles: number;
  readonly freeBytes: Readonly<Record<string, number>>;
  /** Null where this server does not run within the agent. */
  readonly agent: {
    /** By operation. */
    readonly calls: Readonly<Record<string, CallFigures>>;
    /** Failed calls and sign-ins by the code of the failure. */
    readonly failures: Readonly<Record<string, number>>;
    readonly signIns: number;
    /** Calls that wait for their turn now. */
    readonly waiting: number;
    readonly mirroredBytes: number;
    readonly resultBytes: number;
  } | null;
}

export interface CallFigures {
  readonly calls: number;
  readonly bytes: number;
  /** All of them together, and the longest. */
  readonly totalMs: number;
  readonly longestMs: number;
}
