/** What the parts of a sandbox share, and what an operation on a job's files is given besides its request. */
import type { Cluster, SubmittedJob } from './cluster/cluster.ts';
import type { JobSpec } from './cluster/specs.ts';
import type { TransferKeys } from './cluster/transfer-keys.ts';
import type { FaultRule, Faults } from './faults.ts';
import type { SandboxHabits } from './habits.ts';
import type { PipeReads } from './operations/pipe-reads.ts';
import type { SandboxUser, Sessions } from './signin/sessions.ts';
import type { Traffic } from './traffic.ts';

export interface SandboxPlace {
  readonly namespace: string;
  readonly habits: SandboxHabits;
  /** The first one owns jobs that name no owner. */
  readonly users: SandboxUser[];
  readonly clock: () => number;
  readonly cluster: Cluster;
  readonly keys: TransferKeys;
  readonly sessions: Sessions;
  /** Downloads that hang, and all calls of their users with them. */
  readonly pipeReads: PipeReads;
  readonly faults: Faults;
  readonly traffic: Traffic;
  /** What the control interface wants to be shown. */
  readonly controlToken: string;
}

export function submitTo({ cluster, users }: SandboxPlace, spec: JobSpec): Promise<SubmittedJob> {
  return cluster.submit(spec, users[0]?.username ?? '');
}

export type SandboxCounters = ReturnType<typeof countersOf>;

/** The numbers of the traffic, with the temporary keys that are open now and all that were ever issued. */
export function countersOf({ traffic, keys }: SandboxPlace) {
  const { recent: _, calls, ...numbers } = traffic;
  return { ...numbers, calls: { ...calls }, openKeys: keys.open.length, issuedKeys: keys.issued };
}

export interface OperationCall {
  readonly job: SubmittedJob;
  /** Rules that apply to the call; the operation looks for stale sizes only. */
  readonly rules: readonly FaultRule[];
}
