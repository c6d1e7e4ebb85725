/** What an operation is given besides its request. */
import type { Cluster, SubmittedJob } from '../cluster/cluster.ts';
import type { TransferKeys } from '../cluster/transfer-keys.ts';
import type { FaultRule } from '../faults.ts';
import type { SandboxHabits } from '../habits.ts';

export interface OperationPlace {
  readonly namespace: string;
  readonly cluster: Cluster;
  readonly habits: SandboxHabits;
  readonly keys: TransferKeys;
}

export interface OperationCall {
  readonly job: SubmittedJob;
  /** Rules that apply to the call; the operation looks for stale sizes only. */
  readonly rules: readonly FaultRule[];
}
