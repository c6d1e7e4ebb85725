/** What the parts of a sandbox share, and what an operation on a job's files is given besides its request. */
import type { Cluster, SubmittedJob } from './cluster/cluster.ts';
import type { Flushing } from './cluster/flushing.ts';
import type { TransferKeys } from './cluster/transfer-keys.ts';
import type { FaultRule, Faults } from './faults.ts';
import type { SandboxHabits } from './habits.ts';
import type { SandboxUser, Sessions } from './signin/sessions.ts';
import type { Traffic } from './traffic.ts';

export interface SandboxPlace {
  readonly namespace: string;
  readonly habits: SandboxHabits;
  readonly users: readonly SandboxUser[];
  readonly clock: () => number;
  readonly cluster: Cluster;
  readonly flushing: Flushing;
  readonly keys: TransferKeys;
  readonly sessions: Sessions;
  readonly faults: Faults;
  readonly traffic: Traffic;
}

export interface OperationCall {
  readonly job: SubmittedJob;
  /** Rules that apply to the call; the operation looks for stale sizes only. */
  readonly rules: readonly FaultRule[];
}
