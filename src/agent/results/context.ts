/** What looks at the results of a job work with, and how one is asked for. */
import type { JobId } from '../../job.ts';
import type { ResultPassRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { DiskReserve, Throttle } from '../../system/disk-room.ts';
import type { FileCalls } from '../../system/files.ts';
import type { Remote } from '../ports.ts';
import type { DirectResults } from './download/by-direct.ts';
import type { Ledger } from './ledger.ts';
import type { Refusals } from './listing/passed-over.ts';
import type { Patterns } from './listing/selection.ts';
import type { LiveLinks } from './place/live-links.ts';
import type { Progress } from './progress.ts';

export interface ResultsOptions extends Patterns {
  readonly intervalMs: number;
  readonly maxFileBytes: number | null;
  /** Of all downloads together; no limit if left out or null. */
  readonly bandwidthLimit?: number | null;
}

export interface ResultsContext {
  readonly store: Store;
  readonly mirrorDirectory: string;
  /** Whether that lies on a network file system, where any call may take for ever; no if left out. */
  readonly onNetwork?: boolean;
  readonly options: ResultsOptions;
  readonly now: () => number;
  readonly clock?: Clock;
  /** Room on the disk that results leave free. */
  readonly minFreeBytes?: number;
  /** Downloads of a job at a time. */
  readonly parallel?: number;
  /** The way beside SOAP; SOAP alone if left out. */
  readonly direct?: DirectResults;
  /** Told of each file that was fetched, changed or not. */
  readonly onFetched?: (jobId: JobId, name: string, bytes: number, changed: boolean) => void;
  /** Told once a look, if names are refused that were not before. */
  readonly onRefused?: (jobId: JobId, refusals: Refusals) => void;
  /** Told once a look if files that should have come directly come by SOAP. */
  readonly onFallback?: (jobId: JobId, reason: string) => void;
  readonly onProgress?: (progress: ResultPassRow) => void;
}

export interface ResultsPass {
  readonly remote: Remote;
  /** Every file is looked at, whether it is due or not. */
  readonly final: boolean;
  readonly signal: AbortSignal;
}

export interface LookOptions extends ResultsContext {
  readonly onNetwork: boolean;
  readonly calls: FileCalls;
  readonly clock: Clock;
  readonly parallel: number;
  readonly jobId: JobId;
  /** `results/` of the job. */
  readonly directory: string;
  readonly pass: ResultsPass;
  readonly links: LiveLinks;
  readonly ledger: Ledger;
  readonly progress: Progress;
  readonly reserve: DiskReserve;
  readonly throttle: Throttle;
}
