/** What becomes true once all is healed, within which time; and that all views of it agree. */
import fs from 'node:fs';
import path from 'node:path';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { detail, overview } from '../../src/cli/show/status-table.ts';
import type { JobId } from '../../src/job.ts';
import type { Store } from '../../src/store/store.ts';
import { detailOf } from '../../src/view/events/jobs.ts';
import { JobStores } from '../../src/view/fleet.ts';
import type { SimulatedFile, SimulatedJob, SimulatedResult } from './cluster.ts';
import { isReadable } from './safety.ts';
import type { World } from './world.ts';

const MINUTE_MS = 60_000;
/** Live files, ends of jobs and answers to commands: a file that failed by itself waits for half an hour. */
export const LIVE_BOUND_MS = 45 * MINUTE_MS;

/** Lets time pass until nothing is lacking. @throws Error what is after its bound */
export async function becomesTrue(
  world: Pick<World, 'time' | 'pass'>,
  lacking: () => readonly Lack[],
  stepMs = MINUTE_MS,
): Promise<void> {
  const begunAt = world.time.passedMs;
  for (;;) {
    await world.pass(stepMs);
    const takenMs = world.time.passedMs - begunAt;
    const late = lacking().filter(({ boundMs }) => boundMs < takenMs);
    if (late.length > 0) throw new Error(`after ${takenMs} ms: ${late.map(({ what }) => what).join('; ')}`);
    if (lacking().length === 0) return;
  }
}

export interface Lack {
  readonly what: string;
  readonly boundMs: number;
}

interface Here {
  readonly mirrors: string;
  readonly store: Store;
}

/** What of the files of a job is not here as the cluster has it; `isMeant`: of these live files only. */
export const filesLacking = (here: Here, job: SimulatedJob, isMeant?: (file: SimulatedFile) => boolean) => [
  ...liveFilesLacking(here, job, isMeant),
  ...resultsLacking(here, job),
];

export function liveFilesLacking(
  { mirrors, store }: Here,
  job: SimulatedJob,
  isMeant: (file: SimulatedFile) => boolean = () => true,
): string[] {
  const live = [...job.liveFiles()].flatMap(([taskId, file, simulated, content]) => {
    if (!isMeant(simulated)) return [];
    const bytes = readIfThere(mirrorPath(mirrors, job.id, { taskId, file })) ?? Buffer.alloc(0);
    const committed = store.liveFiles.get(job.id, { taskId, file })?.position ?? 0;
    if (!bytes.equals(content)) return [`${taskId}/${file} has ${bytes.length} of ${content.length} bytes`];
    return committed === bytes.length ? [] : [`${taskId}/${file} has committed ${committed} of ${bytes.length} bytes`];
  });
  const none = job.tasks.length > 0 && store.liveFiles.ofJob(job.id).length === 0 ? ['no task is known'] : [];
  return [...none, ...live];
}

export function resultsLacking({ mirrors, store }: Here, job: SimulatedJob): string[] {
  if (store.jobs.get(job.id)?.results !== true) return [];
  return [...job.results].flatMap(([name, result]) => {
    const { kind } = result;
    if (kind === 'unreadable' || kind === 'bad name') return [`${name} can never come`];
    return kind !== 'file' || hasNewest(mirrors, job.id, name, result) ? [] : [`the result ${name} is not here`];
  });
}

export function hasNewest(mirrors: string, jobId: JobId, name: string, { contents }: SimulatedResult): boolean {
  const bytes = readIfThere(path.join(resultsDirectory(mirrors, jobId), name));
  return bytes !== undefined && contents.at(-1)?.equals(bytes) === true;
}

const readIfThere = (file: string) => (fs.existsSync(file) ? fs.readFileSync(file) : undefined);

/** A failed delivery is tried again within that. */
const MAX_DELIVERY_PAUSE_MS = 15 * MINUTE_MS;

/** All that is to be sent was sent. */
export function lacksOfOutbox({ agent, receiver }: Pick<World, 'agent' | 'receiver'>): Lack[] {
  if (!agent.config.notify.length || receiver.state !== 'takes') return [];
  // After the wall clock was set back, a delivery is late (docs/guarantees.md).
  const latest = agent.clock.now() + MAX_DELIVERY_PAUSE_MS;
  const waiting = agent.store.outbox.all().filter(({ dueAt }) => dueAt !== null && dueAt <= latest);
  return waiting.length === 0 ? [] : [{ what: `${waiting.length} notifications wait`, boundMs: LIVE_BOUND_MS }];
}

/** Of a terminal. */
const TERMINAL = 120;

/** What `agent status`, and `agent status JOB` of each job, show. @throws Error if a page does not show a value */
export function checkShown({ config, store }: World['agent']): void {
  const report = reportOf(config, store, undefined);
  const ofJobs = report.jobs.map(({ jobId }) => reportOf(config, store, [jobId]));
  const pages = [overview(report, TERMINAL), ...ofJobs.map((one) => detail(one, TERMINAL))];
  for (const page of pages) if (!isReadable(page)) throw new Error(`a value is not shown:\n${page}`);
  const stores = new JobStores(() => store, null);
  for (const { jobs } of ofJobs)
    for (const job of jobs) {
      const difference = differenceOf(detailOf(stores, job.jobId), job);
      if (difference !== undefined) throw new Error(`the view and --json differ in ${job.jobId}${difference}`);
    }
}

/** Where two reports of one thing differ, in a key that both have, as `.tasks.found: 1, 2`; undefined if they do not. */
function differenceOf(one: unknown, other: unknown): string | undefined {
  if (!isObject(one) || !isObject(other)) return Object.is(one, other) ? undefined : `: ${one}, ${other}`;
  if (Array.isArray(one) && Array.isArray(other) && one.length !== other.length)
    return `.length: ${one.length}, ${other.length}`;
  for (const key of Object.keys(one)) {
    const difference = key in other ? differenceOf(one[key], other[key]) : undefined;
    if (difference !== undefined) return `.${key}${difference}`;
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
