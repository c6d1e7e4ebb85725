/** What polls work with, and how one is asked for. */
import type { Store } from '../../store/store.ts';
import type { Backlogs } from '../live/append/long-backlog.ts';
import type { LiveFileOptions } from '../live/mirror/live-file.ts';
import type { FollowContext } from '../live/steps.ts';
import type { Remote } from '../ports.ts';
import type { BatchReader } from './batch.ts';
import type { QuietFiles } from './quiet-files.ts';

export interface PollContext extends Omit<FollowContext, 'signal' | 'final'> {
  readonly store: Store;
  readonly batches: BatchReader;
  readonly liveFiles: Omit<LiveFileOptions, 'commit' | 'mark'>;
  readonly backlogs: Backlogs;
  readonly now: () => number;
  /** What quiet files look like; without it, every mirror is opened at every poll. */
  readonly quietFiles?: QuietFiles;
  /** Commits what a poll leaves; at once if left out. */
  readonly commit?: Commit;
}

/** Resolves when what `write` writes is on the disk, which is at most `withinMs` from now. */
export type Commit = (write: () => void, withinMs?: number) => Promise<void>;

export interface PollOptions {
  readonly remote: Remote;
  /** Waits until the service may be asked; until then nothing is opened. */
  readonly begin?: () => Promise<void>;
  readonly final: boolean;
  readonly signal: AbortSignal;
}
