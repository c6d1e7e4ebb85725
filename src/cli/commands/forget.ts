/** `agent forget JOB...`: removes jobs that are not followed from the state, and on request their files. */
import { lastWorkOn, requireOver } from '../../agent/forget.ts';
import { MAX_OFF_MS, storedAheadMs } from '../../agent/service-clock.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { withSharedStore } from '../../daemon/state.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import { compareIds, isOver, type JobId } from '../../job.ts';
import { countOf, showAge, showBytes } from '../../numbers.ts';
import { printableLines, withoutStop } from '../../printable.ts';
import { unprovenIn } from '../../proven.ts';
import type { Store } from '../../store/store.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import { askIn } from '../ask-agent.ts';
import { type ConfigOption, ownConfiguration } from '../configuration.ts';
import { lineTyped } from '../init/answers.ts';
import { commandLog, forEach, untilStopped } from '../process.ts';

interface ForgetArguments extends ConfigOption {
  /** In milliseconds. */
  readonly olderThan?: number;
  readonly deleteFiles?: boolean;
  readonly unproven?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export async function forget(jobIds: readonly JobId[], options: ForgetArguments): Promise<void> {
  if (jobIds.length === 0 && options.olderThan === undefined)
    throw new JobtailError('usage', 'the id of a job is missing', {
      hint: 'name jobs, or use --older-than 30d for all jobs that ended before',
    });
  const config = await ownConfiguration(options);
  await untilStopped(async (signal) => {
    const { deleteFiles = false } = options;
    const choose = (store: Store, removing: Removal['removing']) =>
      forgetChosen(config, jobIds, { store, removing, options, signal });
    if (hasFleet(config)) {
      const { withJobsOfFleet } = await import('../../daemon/fleet-retention.ts');
      await withJobsOfFleet(config, commandLog(), (store, remove) =>
        choose(store, (work) => work((jobId) => remove(jobId, deleteFiles))),
      );
      return;
    }
    const kind = deleteFiles ? 'forget-files' : 'forget';
    const { withServedState } = await import('../serve-state.ts');
    const removing: Removal['removing'] = (work) =>
      withServedState(config, async (state, stop) => {
        await work((jobId) => askIn(state, { kind, jobId }, stop));
        return () => {};
      });
    await withSharedStore(config, (store) => choose(store, removing));
  });
}

interface Removal {
  readonly store: Store;
  /** Runs `work`, which removes jobs one after the other. */
  readonly removing: (work: (remove: (jobId: JobId) => Promise<RemovedFiles>) => Promise<void>) => Promise<void>;
  readonly options: ForgetArguments;
  readonly signal: AbortSignal;
}

async function forgetChosen(config: Config, jobIds: readonly JobId[], forgetting: Removal): Promise<void> {
  const { store, removing, options } = forgetting;
  const { deleteFiles = false, yes = false } = options;
  const chosen: JobId[] = [];
  if (options.olderThan !== undefined) requireClock(store);
  const named = jobIds.length > 0 ? jobIds : [...store.jobs.known()].sort(compareIds);
  await forEach(named, async (jobId) => {
    if (isChosen(jobId, jobIds.length > 0, forgetting)) chosen.push(jobId);
  });
  if (chosen.length === 0) {
    process.stderr.write(NONE_REMOVED);
    return;
  }
  if (options.dryRun === true) {
    const left = deleteFiles ? 'with all its files' : 'and its files would stay';
    for (const jobId of chosen) process.stdout.write(`job ${jobId} would be removed, ${left}\n`);
    return;
  }
  const files = deleteFiles ? `delete all files below ${config.mirror.directory}/JOB` : 'keep the files';
  const question = `remove ${countOf(chosen.length, 'job')} (${listOf(chosen)}) from the state, and ${files}?`;
  if (!yes && !(await isAgreed(question, forgetting.signal))) {
    process.stderr.write(NONE_REMOVED);
    process.exitCode = EXIT.failed;
    return;
  }
  await removing((remove) =>
    forEach(chosen, async (jobId) => {
      const removed = await remove(jobId);
      const what = `${countOf(removed.files, 'file')} deleted (${showBytes(removed.bytes)})`;
      const stay = `its files stay in ${config.mirror.directory}/${jobId}`;
      process.stdout.write(`job ${jobId} is removed; ${deleteFiles ? what : stay}\n`);
    }),
  );
}

/** By a wrong clock, a job of today is old. @throws JobtailError */
function requireClock({ capabilities }: Store): void {
  const offMs = storedAheadMs(capabilities);
  if (Math.abs(offMs) <= MAX_OFF_MS) return;
  const what = `the clock of this machine is ${showAge(Math.abs(offMs))} ${offMs < 0 ? 'ahead of' : 'behind'} the service`;
  throw new JobtailError('local-io', `${what}: no job is removed by its age`, {
    hint: 'set the clock by NTP, and start the agent (agent run), which compares both; or name the jobs',
  });
}

/** Whether a job is to be removed; one that is followed, and a named one that is unknown, is an error. */
function isChosen(jobId: JobId, isNamed: boolean, { store, options }: Removal): boolean {
  const job = store.jobs.get(jobId);
  if (job === undefined && isNamed)
    throw new JobtailError('job-unknown', `the state has no job ${jobId}`, {
      hint: 'agent status --all lists its jobs',
    });
  if (job === undefined || (!isNamed && !isOver(job))) return false;
  requireOver(job);
  if (options.olderThan !== undefined && lastWorkOn(job) > Date.now() - options.olderThan) return false;
  const [reason, ...more] = options.unproven === true ? [] : unprovenIn(store, jobId);
  if (reason === undefined) return true;
  const what = `job ${jobId} is not proven: ${withoutStop(reason)}${more.length === 0 ? '' : `, and ${countOf(more.length, 'other reason')}`}`;
  process.stderr.write(`agent: ${printableLines(what)}: it stays (--unproven removes it, too)\n`);
  process.exitCode ||= EXIT.failed;
  return false;
}

const NONE_REMOVED = 'no job is removed\n';
const MAX_NAMED = 5;
const listOf = (jobIds: readonly JobId[]) =>
  `${jobIds.slice(0, MAX_NAMED).join(', ')}${jobIds.length > MAX_NAMED ? ', ...' : ''}`;

/** Asks on the terminal. @throws JobtailError usage without one */
async function isAgreed(question: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new JobtailError('usage', '--yes is missing, and there is no terminal to ask on', {
      hint: 'with --yes, the command does not ask',
    });
  const answer = await lineTyped(`${printableLines(question)} [y/N] `, false, signal);
  return /^y(es)?$/i.test(answer);
}
