/** All jobs of the user: which are taken, how many at a time, and what becomes of them. */
import { describe, expect, it } from 'vitest';
import { choiceOf, chooseMine, seenIn, seenStateOf } from '../../../src/agent/watch-mine.ts';
import { type JobId, keyText, type TaskId } from '../../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../../src/job-information.ts';
import type { WatchMineRow } from '../../../src/store/rows.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const NOW = Date.UTC(2026, 10, 5);
const ALL = { include: ['**'], exclude: [], maxAgeMs: DAY_MS, maxJobs: 200 };

describe('a job of the user', () => {
  const choose = async (rule: Partial<WatchMineRow>, ...jobs: JobInformation[]) =>
    (await chooseMine(jobs, { ...ALL, source: 'config', since: NOW - DAY_MS / 2, ...rule }, NOW)).map(({ id }) => id);

  it('is taken in the order in which there is something to see of it', async () => {
    const ended = (id: string, ms: number) => jobOf(id, 'Finished', { endTime: at(ms) });
    const jobs = [
      ended('1', NOW - 2 * MINUTE_MS),
      ended('2', NOW - MINUTE_MS),
      ended('7', NOW - MINUTE_MS),
      jobOf('3', 'Configuring'),
      jobOf('4', 'Queued'),
      jobOf('5', 'Somehow'),
      jobOf('6', 'Running'),
    ];
    expect(await choose({}, ...jobs)).toEqual(['6', '4', '5', '7', '2', '1']);
  });

  it('that ended before the rule began, and longer ago than it says, is left alone', async () => {
    const ended = (id: string, ms: number) => jobOf(id, 'Failed', { endTime: at(ms) });
    const jobs = [ended('1', NOW - DAY_MS - 1), ended('2', NOW - DAY_MS), ended('3', NOW)];
    expect(await choose({}, ...jobs)).toEqual(['3', '2']);
    expect(await choose({ since: NOW - 2 * DAY_MS }, ...jobs)).toEqual(['3', '2', '1']);
    expect(await choose({ maxAgeMs: 1 }, ...jobs)).toEqual(['3']);
  });

  it('is taken by its name', async () => {
    const named = (id: string, name: string | null) => jobOf(id, 'Running', { name });
    const jobs = [named('1', 'train-1'), named('2', 'train-test'), named('3', 'Train-3'), named('4', null)];
    const hostile = ['../x', '/train-5', './', '', '..', 'a/train-6', '\u001b[31m'].map((name, index) =>
      named(`1${index}`, name),
    );
    expect(await choose({ include: ['train-*'], exclude: ['*-test'] }, ...jobs, ...hostile)).toEqual(['15', '11', '1']);
    expect(await choose({ exclude: ['train-*'] }, ...jobs)).toEqual(['4', '3']);
    expect(await choose({ include: ['**', '!train-*'] }, ...jobs)).toEqual(['4', '3']);
  });
});

/** Thirty jobs, each third of which runs or waits; the others ended, half of them long ago. */
async function thirty() {
  const clock = new HeldClock(NOW);
  const service = new ModelJobService();
  const remote = new ModelRemote();
  for (let id = 1; id <= 30; id++) {
    const tasks = tasksOf(String(10_000 + id));
    const [kind, endTime] = [id % 3, at(NOW - (id % 2 === 0 ? 30 * DAY_MS : MINUTE_MS))];
    const state = kind === 0 ? (id % 2 === 0 ? 'Running' : 'Queued') : 'Finished';
    service.set(jobOf(String(id), state, { tasks, endTime: kind === 0 ? null : endTime }));
    remote.files.set(keyText({ taskId: String(10_000 + id) as TaskId, file: 'stdout' }), Buffer.from(`of ${id}\n`));
  }
  const place = await startAgent(remote, { jobService: service, clock, sections: 'results: {enabled: false}\n' });
  const { store, agent } = place;
  const order = (rule: Partial<WatchMineRow> = {}) => {
    store.watchMine.save({ ...ALL, ...rule, source: 'command', since: clock.now() });
    agent.refresh();
  };
  const inState = (state: string) => store.jobs.all().filter((job) => job.state === state);
  return { ...place, clock, service, order, inState };
}

describe('a job that is over when it is taken', () => {
  const [early, late] = ['2026-11-05T10:00:00', '2026-11-05T10:00:20'];
  it.each<[string, Partial<JobInformation> | undefined, string | null, string | null]>([
    ['came after the last list', undefined, late, 'Submitted'],
    ['came after the last list, by times of other zones', undefined, `${late}Z`, null],
    ['was in the last list as waiting', { state: 'Queued' }, early, 'Queued'],
    ['was in the last list as over', { state: 'Failed' }, early, null],
    ['is missing in the last list, but submitted before', undefined, early, null],
    ['has no submission', undefined, null, null],
  ])('and %s', async (_, before, submitted, seenState) => {
    const submitTime = submitted === null ? null : jobTimeOf(submitted);
    const other = jobOf('1', 'Running', { submitTime: jobTimeOf(early) });
    const job = jobOf('7', 'Failed', { submitTime });
    const last = await seenIn(before === undefined ? [other] : [other, { ...job, ...before }]);
    expect(seenStateOf(job, last)).toBe(seenState);
    expect(seenStateOf(job, undefined)).toBeNull();
  });

  it('is followed with what the list before shows, and a first list shows nothing', async () => {
    const { clock, service, order, store } = await thirty();
    for (const job of service.jobs.values()) service.set({ ...job, submitTime: jobTimeOf(early) });
    order();
    await clock.passUntil('the first jobs', () => store.jobs.all().length > 0, MINUTE_MS);
    expect(new Set(store.jobs.all().map((job) => job.seenState))).toEqual(new Set([null]));
    service.set(jobOf('31', 'Failed', { submitTime: jobTimeOf(late) }));
    await clock.passUntil('the new job', () => store.jobs.get('31' as JobId) !== undefined, 5 * MINUTE_MS);
    expect(store.jobs.get('31' as JobId)).toMatchObject({ seenState: 'Submitted', source: 'mine' });
  });
});

describe('all jobs of the user', () => {
  it('are followed, running ones first and never more than the rule says, until each is settled', async () => {
    const { clock, service, order, inState, said, store } = await thirty();
    order({ maxJobs: 6 });
    await clock.passUntil('the first jobs', () => inState('watched').length === 6, MINUTE_MS);
    const running = inState('watched').filter(({ jobId }) => service.jobs.get(jobId)?.state === 'Running');
    expect(running).toHaveLength(5);
    expect(store.jobInformation.lastListing()).toMatchObject({ listed: 30, waiting: 14 });
    expect(said).toContainEqual('jobs of the user followed taken=6 waiting=14');
    const rule = { ...ALL, maxJobs: 8, source: 'command', since: NOW } as const;
    const choice = await choiceOf([...service.jobs.values()], rule, store, clock.now());
    expect([choice.fresh, choice.fitting, choice.taken].map(({ length }) => length)).toEqual([24, 14, 2]);
    const smaller = await choiceOf([...service.jobs.values()], { ...rule, maxJobs: 4 }, store, clock.now());
    expect(smaller.taken, 'more are followed by the rule before').toEqual([]);
    for (const job of service.jobs.values()) service.set({ ...job, state: 'Finished', endTime: at(clock.now()) });
    for (let minute = 0; minute < 15; minute++) {
      await clock.pass(MINUTE_MS);
      expect(inState('watched').length).toBeLessThanOrEqual(6);
    }
    // All are young now.
    await clock.passUntil('all of them', () => inState('settled').length === 30);
    expect(store.jobs.all().every(({ source }) => source === 'mine')).toBe(true);
  });

  it('are followed once, over starts; an end by a person counts, and those that came by the rule stay when it ends', async () => {
    const { clock, service, order, inState, restart, store } = await thirty();
    order({ maxAgeMs: MINUTE_MS / 2 });
    await clock.passUntil('the jobs that are active', () => inState('watched').length === 10);
    const [one] = inState('watched');
    if (one === undefined) throw new Error('none is watched');
    store.jobs.unwatch(one.jobId, 'ended');
    const agent = await restart();
    await clock.pass(5 * MINUTE_MS);
    expect(inState('watched')).toHaveLength(9);
    expect(inState('ended')).toHaveLength(1);
    store.watchMine.remove('command');
    agent.refresh();
    service.set(jobOf('999', 'Running'));
    await clock.pass(5 * MINUTE_MS);
    expect(inState('watched')).toHaveLength(9);
  });
});

it('jobs that were created and never submitted hold no place', async () => {
  const { clock, service, order, store, watch } = await thirty();
  service.jobs.clear();
  for (const id of ['901', '902', '903']) service.set(jobOf(id, 'Configuring', { tasks: tasksOf(`${id}1`) }));
  order({ maxJobs: 2 });
  // One was taken by an earlier version.
  watch({ files: [], results: false, source: 'mine', jobId: '901' as JobId });
  await clock.pass(5 * MINUTE_MS);
  for (const id of ['904', '905']) service.set(jobOf(id, 'Running', { tasks: tasksOf(`${id}1`) }));
  await clock.pass(5 * MINUTE_MS);
  expect(new Set(store.jobs.all().map(({ jobId }) => jobId))).toEqual(new Set(['901', '904', '905']));
  expect(store.jobs.followedByRule()).toBe(2);
  service.set(jobOf('904', 'Finished', { tasks: tasksOf('9041') }));
  service.set(jobOf('902', 'Queued', { tasks: tasksOf('9021') }));
  await clock.passUntil('the place', () => store.jobs.get('902' as JobId)?.state === 'watched', 10 * MINUTE_MS);
});

it('without a service that tells of jobs, the rule is refused in words that help', async () => {
  const { store, agent, warnings } = await startAgent(new ModelRemote());
  store.watchMine.save({ ...ALL, source: 'command', since: NOW });
  agent.refresh();
  agent.refresh();
  expect(warnings).toEqual([
    expect.stringMatching(/^the jobs of the user cannot be followed: there is no job service .*\(set service\.jobsUrl/),
  ]);
});
