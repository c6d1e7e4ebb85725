/** How the agents of a fleet stand, for people. */
import pc from 'picocolors';
import { countOf, showAge, showCount } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { JobReport } from './status-report.ts';
import { fitted } from './table.ts';

/** What the report of a fleet has besides. */
export interface FleetPart {
  readonly agents: readonly ShownAgent[];
  /** Jobs that nobody owns. */
  readonly waitingJobs: number;
}

export interface ShownAgent {
  readonly name: string;
  readonly state: 'alive' | 'draining' | 'gone';
  readonly jobs: number;
  readonly mostJobs: number;
  /** How old what it shows may be, in milliseconds; null while it has nothing to show. */
  readonly lagMs: number | null;
  readonly callsLastMinute: number;
  /** Of the calls a minute that all may make together, from 0 to 1; null without a fixed limit. */
  readonly budgetShare: number | null;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
  /** Why it takes no jobs; null if it does. */
  readonly lacks: string | null;
  /** Jobs that it owns and does not follow. */
  readonly notFollowed: number;
}

/** Whose a job is, where there is a fleet. */
export type OwnedJob = JobReport & { readonly owner?: string | null; readonly attempt?: number | null };

export function fleetLines({ agents, waitingJobs }: FleetPart, columns: number): string[] {
  if (agents.length === 0) return [pc.yellow('no agent of the fleet is running (agent run)')];
  const head = ['agent', 'state', 'jobs', 'lag', 'calls'];
  const rows = agents.map((agent) => {
    const { name, jobs, mostJobs, callsLastMinute, budgetShare } = agent;
    const share =
      budgetShare === null ? `${showCount(callsLastMinute)} a minute` : `${Math.round(budgetShare * 100)} %`;
    return [printable(name), stateOf(agent), `${showCount(jobs)} of ${showCount(mostJobs)}`, lagOf(agent), share];
  });
  const narrow = () => rows.map(([name = '', state = '', jobs = '']) => `${pc.bold(name)} ${state}, ${jobs} jobs`);
  const waiting = waitingJobs === 0 ? [] : [pc.yellow(`${countOf(waitingJobs, 'job')} without an owner`)];
  return [...fitted({ head, rows, narrow }, columns), ...agents.flatMap(lackLines), ...waiting];
}

/** Why an agent that is there does not do its work. */
function lackLines({ name, state, lacks, notFollowed }: ShownAgent): string[] {
  if (state === 'gone') return [];
  const lines: string[] = [];
  if (lacks !== null) lines.push(pc.yellow(`${printable(name)} takes no jobs: ${printable(lacks)}`));
  if (notFollowed > 0)
    lines.push(pc.yellow(`${printable(name)} owns ${countOf(notFollowed, 'job')} that it does not follow`));
  return lines;
}

function stateOf({ state, seenAt }: ShownAgent): string {
  if (state === 'gone') return pc.red(`gone, seen ${showAge(Date.now() - seenAt)} ago`);
  return state === 'alive' ? pc.green(state) : pc.yellow(state);
}

const lagOf = ({ lagMs, state }: ShownAgent) => (lagMs === null || state === 'gone' ? '' : showAge(lagMs));

/** For the page of one job. */
export function ownerText({ owner, attempt }: OwnedJob): string {
  if (owner === undefined) return '';
  return owner === null ? 'without an owner' : `with ${printable(owner)} (attempt ${attempt ?? 0})`;
}
