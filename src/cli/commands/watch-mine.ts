/** `agent watch --mine` and `unwatch --mine`: follow every job of the user from its submission until it is settled. */

import { choiceOf } from '../../agent/watch-mine.ts';
import { type Config, type FleetConfig, hasFleet } from '../../config/config.ts';
import { makeDirectories, withStore } from '../../daemon/own-state.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { JobInformation } from '../../job-information.ts';
import { countOf, showCount } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { WatchMineRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { DAY_MS } from '../../system/clock.ts';
import { type ConfigOption, ownConfiguration } from '../configuration.ts';
import { listJobs, requireJobsUrl } from '../job-service.ts';
import { commandLog } from '../process.ts';

interface WatchMineOptions extends ConfigOption {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** In milliseconds. */
  readonly maxAge?: number;
  readonly maxJobs?: number;
}

const MAX_JOBS = 200;

export async function watchMine({ include, exclude, maxAge, maxJobs, ...options }: WatchMineOptions): Promise<void> {
  const config = await ownConfiguration(options);
  requireJobsUrl(config);
  // The service may take long: an agent that starts meanwhile gets the state.
  const reported = await listJobs(config).catch(unlessAborted);
  await withRules(config, async (store, { save, isRunning }) => {
    const now = Date.now();
    const rule: WatchMineRow = {
      source: 'command',
      include: include.length > 0 ? include : ['**'],
      exclude,
      maxAgeMs: maxAge ?? DAY_MS,
      maxJobs: maxJobs ?? config.watchMine?.maxJobs ?? MAX_JOBS,
      since: store.watchMine.of('command')?.since ?? now,
    };
    const count = reported instanceof JobtailError ? unknownCount(reported) : await countOfTaken(reported, store, rule);
    await save(rule);
    process.stdout.write('following every job of the user, from its submission until it is settled\n');
    process.stdout.write(`${count}\n`);
    if (!isRunning) process.stderr.write('no agent is running: start one to follow the jobs (agent run)\n');
  });
}

async function countOfTaken(reported: readonly JobInformation[], store: Store, rule: WatchMineRow): Promise<string> {
  const { fresh, fitting, taken } = await choiceOf(reported, rule, store, Date.now());
  const running = taken.filter(({ state }) => state === 'Running').length;
  const others = [
    [reported.length - fresh.length, 'watched before'],
    [fresh.length - fitting.length, 'ignored (too old, or another name)'],
    [fitting.length - taken.length, `waiting (at most ${rule.maxJobs} at a time)`],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`, ${showCount(Number(count))} ${what}`]));
  const now = `${showCount(taken.length)} taken now (${showCount(running)} running)`;
  return `${countOf(reported.length, 'job')} of the user: ${now}${others.join('')}`;
}

/** The rule is stored even if the service reports no jobs now. */
function unlessAborted(thrown: unknown): JobtailError {
  const error = asJobtailError(thrown);
  if (error.code === 'aborted') throw error;
  return error;
}

const unknownCount = ({ message, hint }: JobtailError) =>
  `how many there are now is unknown: ${printable(message)}${hint === undefined ? '' : ` (${printable(hint)})`}`;

export async function unwatchMine(options: ConfigOption): Promise<void> {
  const config = await ownConfiguration(options);
  await withRules(config, async (store, { save }) => {
    const isConfigured = config.watchMine !== null;
    if (store.watchMine.of('command') === undefined) {
      const message = 'no command added the rule for all jobs of the user';
      throw new JobtailError('job-unknown', message, {
        hint: isConfigured ? `set watchMine: false in ${config.file}` : 'run agent watch --mine to store one',
      });
    }
    await save(undefined);
    const followed = store.jobs.followedByRule();
    process.stdout.write('no new jobs of the user are followed from now on\n');
    if (followed > 0) {
      const still = `still followed until settled: ${countOf(followed, 'job')}`;
      process.stdout.write(`${still} (agent unwatch JOB ends one)\n`);
    }
    if (isConfigured) process.stdout.write(`watchMine of ${config.file} is in force again\n`);
  });
}

interface Rules {
  readonly isRunning: boolean;
  save(rule: WatchMineRow | undefined): void | Promise<void>;
}

type Work = (store: Store, rules: Rules) => Promise<void>;

/** In a fleet, the store contains all jobs. */
async function withRules(config: Config, work: Work): Promise<void> {
  if (hasFleet(config)) return await withRulesOfFleet(config, work);
  makeDirectories(config);
  await withStore(config, commandLog(), async (store, owned) => {
    const save = (rule: WatchMineRow | undefined) => {
      store.transaction(() => (rule === undefined ? store.watchMine.remove('command') : store.watchMine.save(rule)));
      store.wake();
    };
    await work(store, { save, isRunning: owned === undefined });
  });
}

async function withRulesOfFleet(config: FleetConfig, work: Work): Promise<void> {
  const { isAnyThere, withFleet } = await import('../fleet/client.ts');
  await withFleet(config, async (client) => {
    const isRunning = await isAnyThere(client);
    await work(await client.jobs(), { save: (rule) => client.setRule(rule), isRunning });
  });
}
