/** Agents of a fleet round by round: what each has of a job that it loses or hands off, and that comes back. */
import { type EventEmitter, once } from 'node:events';
import { expect, vi } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import type { FleetSummary } from '../../src/fleet/agents/agents.ts';
import { Readiness } from '../../src/fleet/agents/readiness.ts';
import type { FleetContext } from '../../src/fleet/owners/following.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import { Rounds } from '../../src/fleet/rounds.ts';
import { Handover } from '../../src/fleet/rows/handover.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { DAY_MS } from '../../src/system/clock.ts';
import { until } from '../support/e2e-until.ts';
import { type FleetParts, fleetTest, memberOf, orderFor, watches } from '../support/fleet-parts.ts';
import { HeldClock } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const LEASE_MS = 60_000;
const GRANT = { protocol: 'SftpScp', host: 'h', basePath: '/', username: 'u', publicKey: 'k' } as const;
const REPORT = { pollAgeMs: null, callsLastMinute: 0, capacity: 100, lacks: null, notFollowed: 0 };
const [ONE, TWO] = [1, 2].map((number) => orderFor(number).jobId) as [JobId, JobId];

/** An agent whose rounds the test begins. */
async function agentOf(fleet: FleetParts, name: string, mirror = 'shared') {
  const joined = await fleet.join(name);
  const member = memberOf(name, { mostJobs: 100, leaseMs: LEASE_MS, mirror });
  await joined.agents.join(member);
  const clock = new HeldClock();
  const directory = temporaryDirectory(undefined, fleet.test);
  const store = new Store({ directory, service: '', owner: true, now: clock.now });
  fleet.test.onTestFinished(() => store.close());
  const lines: string[] = [];
  const say = (_: object, message: string) => void lines.push(message);
  const leased = new LeasedJobs(clock, LEASE_MS);
  leased.prolong(leased.moment());
  const [taken, ended, failures]: [JobId[], JobId[], string[]] = [[], [], []];
  const acts = { refreshes: 0, refresh: () => {}, release: async (_: JobId) => {}, endTransfer: async () => {} };
  const changes = store.noteChanges();
  const onLost: Rounds['following']['lost'] = (jobs) => rounds.following.lost(jobs);
  const { database, claims, agents } = joined;
  const context: FleetContext = {
    ...{ store, clock, mirror, leased, joined, member },
    log: { debug: say, info: say, warn: say, error: say },
    async endTransfer(jobId) {
      await acts.endTransfer();
      ended.push(jobId);
    },
    onFailure: (error) => void failures.push(error.message),
    handover: new Handover({ store, database, claims, mirror, onLost }, changes),
    attached: {
      follower: {
        take: (jobIds) => void taken.push(...jobIds),
        release: (jobId) => acts.release(jobId),
        refresh() {
          acts.refreshes += 1;
          acts.refresh();
        },
      },
      configured: [],
      unsent: () => new Set(),
    },
  };
  const readiness = new Readiness({ ...clock, ...context, unready: () => undefined });
  const rounds = new Rounds(context, readiness);
  const summaryOf = (isDraining: boolean): Promise<FleetSummary> => agents.report(member, { ...REPORT, isDraining });
  /** So long after the one before that all its parts are due, unless it is shorter. */
  const round = async (isDraining = false, afterMs = 30_000) => {
    await clock.pass(afterMs);
    leased.prolong(leased.moment());
    return await rounds.round(await summaryOf(isDraining), isDraining, true);
  };
  return { ...context, context, ...{ rounds, round, readiness, changes, acts, taken, ended, failures, lines, clock } };
}

type Agent = Awaited<ReturnType<typeof agentOf>>;

/** A test of an agent that follows the jobs of these numbers. */
function annaTest(title: string, numbers: readonly number[], work: (anna: Agent, fleet: FleetParts) => Promise<void>) {
  fleetTest(title, async (fleet) => {
    const anna = await agentOf(fleet, 'anna');
    await anna.joined.commands.give(watches(...numbers));
    await anna.round();
    await work(anna, fleet);
  });
}

fleetTest('a job that comes back has its open command, and nothing of the lease before', async (fleet) => {
  const anna = await agentOf(fleet, 'anna');
  const bert = await agentOf(fleet, 'bert', 'elsewhere');
  const { commands, claims } = anna.joined;
  await commands.give(watches(1));
  await anna.round();
  expect(anna.store.fleetLeases.all()).toEqual([{ jobId: ONE, attempt: 1 }]);
  // A search that begins and ends.
  const searches: unknown[] = [];
  for (const { tasks } of [{ tasks: null }, orderFor(1)]) {
    anna.store.transaction(() => anna.store.jobs.watch({ ...orderFor(1), tasks }, 0));
    await anna.round();
    searches.push(...(await fleet.query(`SELECT count(*)::int FROM jobtail.rows WHERE kind = 'task_searches'`)));
  }
  expect(searches).toEqual([{ count: 1 }, { count: 0 }]);
  const [commandId = ''] = await commands.give([{ jobId: ONE, kind: 'sync' }]);
  const [file] = anna.store.liveFiles.ofJob(ONE);
  if (file === undefined) throw new Error('it has no live file');
  anna.store.liveFiles.save({ ...file, position: 7 });
  anna.store.leases.ask(ONE, 1);
  const { refreshes } = anna.acts;
  await anna.round();
  expect(anna.acts.refreshes).toBe(refreshes + 1);
  const passes = ({ store }: typeof anna) => store.requests.open('pass').map(({ requestId }) => requestId);
  expect(passes(anna)).toHaveLength(1);
  await anna.round(true);
  expect([anna.ended, anna.store.jobs.get(ONE), passes(anna), anna.changes.jobs()]).toEqual([[ONE], undefined, [], []]);

  /** Versions of the rows of files that have no bytes: none of them is written again. */
  const unchanged = () =>
    fleet.query(`SELECT key, xmin::text FROM jobtail.rows WHERE kind = 'live_files' AND row ->> 'position' = '0'
      AND key <> '${anna.store.liveFiles.portable(file).key}' ORDER BY key`);
  const before = await unchanged();
  expect(before).not.toEqual([]);
  await bert.round();
  expect([bert.taken, bert.store.fleetLeases.all()]).toEqual([[ONE], [{ jobId: ONE, attempt: 2 }]]);
  // Its mirrors are not here, and a key may be the one of the agent before.
  expect(bert.store.liveFiles.ofJob(ONE).map(({ position }) => position)).toEqual([0, 0, 0, 0]);
  expect(bert.store.leases.lastOf(ONE)).toMatchObject({ state: 'unknown' });
  expect(await fleet.query('SELECT mirror FROM jobtail.jobs')).toEqual([{ mirror: 'elsewhere' }]);
  expect([await unchanged(), passes(bert).length]).toEqual([before, 1]);
  await fleet.query(`UPDATE jobtail.agents SET seen_at = seen_at - interval '1 hour' WHERE name = 'bert'`);
  expect([await claims.freeSilent(), await claims.freeSilent()]).toEqual([1, 0]);

  // Of a process that was killed.
  anna.store.transaction(() => anna.store.jobs.watch({ ...orderFor(1), tasks: ['9002' as TaskId] }, 0));
  await anna.round(false, 1_000);
  expect(anna.store.liveFiles.ofJob(ONE).map(({ taskId }) => taskId)).toEqual(Array(4).fill(file.taskId));
  expect([anna.taken, anna.store.fleetLeases.all()]).toEqual([[ONE, ONE], [{ jobId: ONE, attempt: 3 }]]);
  expect([anna.rounds.taking.takeovers, passes(anna).length]).toEqual([1, 1]);
  expect(await commands.answerOf(commandId)).toBeUndefined();
  // It stays until its commands are answered, its keys have ended, and a notification of it was sent, or too late.
  const stays = async (afterMs?: number) => {
    await anna.round(false, afterMs);
    return anna.store.jobs.get(ONE)?.state;
  };
  anna.store.jobs.setState(ONE, 'settled');
  expect(await stays()).toBe('settled');
  const leaseId = anna.store.leases.ask(ONE, 1);
  anna.store.leases.open({ ...GRANT, leaseId }, 1);
  for (const requestId of passes(anna)) anna.store.requests.answer(requestId, '{"error":"it was seen"}');
  expect(await stays(1_000)).toBe('settled');
  expect(await commands.answerOf(commandId)).toEqual({ error: 'it was seen' });
  anna.store.leases.end(leaseId, 1, null);
  anna.attached.unsent = () => new Set([ONE]);
  expect([await stays(), await stays(DAY_MS - 1), await stays(1)]).toEqual(['settled', 'settled', undefined]);
  expect(await fleet.query('SELECT agent, how FROM jobtail.attempts ORDER BY attempt')).toEqual([
    { agent: 'anna', how: 'handed-over' },
    { agent: 'bert', how: 'lost' },
    { agent: 'anna', how: 'done' },
  ]);
  // It waits for an owner again only once there is another command.
  const waiting = () => fleet.query('SELECT job_id FROM jobtail.jobs WHERE waiting_since IS NOT NULL');
  expect(await waiting()).toEqual([]);
  await commands.give([{ jobId: ONE, kind: 'sync' }]);
  expect(await waiting()).toEqual([{ job_id: ONE }]);
  expect([...anna.failures, ...bert.failures]).toEqual([]);
});

annaTest('commands that could not be written are executed again, in their order', [2], async (anna) => {
  const { commands } = anna.joined;
  const both = [...watches(1), { jobId: ONE, kind: 'sync' }, ...watches(2), { jobId: TWO, kind: 'unwatch' }] as const;
  const given = await commands.give(both);
  const left: JobId[] = [];
  anna.acts.release = async (jobId) => void left.push(jobId);
  for (const isDraining of [true, false]) {
    vi.spyOn(anna.handover, 'writeAnd').mockRejectedValueOnce(new JobtailError('fleet', 'the database is away'));
    await expect(anna.round(isDraining)).rejects.toThrow('the database is away');
  }
  expect(left, 'no job is handed off meanwhile').toEqual([]);
  // The rows of the new job are brought again, without the request of before; then all requests are gone.
  for (const gone of [false, true]) {
    for (const { requestId } of gone ? anna.store.requests.open('pass') : []) anna.store.requests.remove(requestId);
    for (let rounds = 0; rounds < 2; rounds++) await anna.round();
    const asked = new Set(anna.store.requests.open('pass').map(({ jobId, kind }) => `${kind} ${jobId}`));
    expect(asked).toEqual(new Set(['sync 1', 'unwatch 2']));
  }
  expect(Object.fromEntries(anna.store.jobs.states())).toEqual({ 1: 'watched', 2: 'ending' });
  const answers = await Promise.all(given.map((id) => commands.answerOf(id)));
  expect(answers).toEqual([{}, undefined, {}, undefined]);
});

annaTest(
  'commands that the state had no room for are executed later, or by the next owner',
  [1, 2],
  async (anna, fleet) => {
    const { commands } = anna.joined;
    const given = await commands.give([ONE, TWO].map((jobId) => ({ jobId, kind: 'sync' })));
    const add = vi
      .spyOn(anna.store.requests, 'add')
      .mockImplementationOnce(anna.store.requests.add.bind(anna.store.requests));
    const full = () => {
      throw new JobtailError('disk-full', 'no room left');
    };
    add.mockImplementationOnce(full);
    await expect(anna.round()).rejects.toThrow('no room left');
    await anna.round();
    const passes = anna.store.requests.open('pass');
    expect(passes.map(({ jobId }) => jobId)).toEqual([ONE, TWO]);
    for (const { requestId, jobId } of passes) anna.store.requests.answer(requestId, JSON.stringify({ error: jobId }));
    await anna.round();
    expect(await Promise.all(given.map((id) => commands.answerOf(id)))).toEqual([{ error: ONE }, { error: TWO }]);
    // It still hands its jobs off, with the command.
    await commands.give([{ jobId: ONE, kind: 'sync' }, ...watches(3)]);
    add.mockImplementation(full);
    await expect(anna.round(true)).rejects.toThrow('no room left');
    expect(anna.leased.size).toBe(0);
    const bert = await agentOf(fleet, 'bert');
    await bert.round();
    const asked = bert.store.requests.open('pass').map(({ jobId }) => jobId);
    expect([bert.taken, asked]).toEqual([[orderFor(3).jobId, ONE, TWO], [ONE]]);
  },
);

annaTest('jobs whose lease may be over are paused, and resumed once they were released', [1, 2], async (anna) => {
  const { commands } = anna.joined;
  const { following } = anna.rounds;
  for (const times of [1, 2]) {
    const released = new Map<JobId, () => void>();
    anna.acts.release = (jobId) => new Promise((resolve) => released.set(jobId, resolve));
    await anna.clock.pass(LEASE_MS);
    for (let ticks = 0; ticks < 2; ticks++) following.pauseIfExpired();
    await until('the releases', () => released.size === 2);
    anna.leased.prolong(anna.leased.moment());
    following.resumeIfValid(anna.leased.all());
    expect(anna.leased.all('paused')).toHaveLength(2);
    // A command for a job that is paused is executed when it is followed again.
    const [commandId = ''] = await commands.give([{ jobId: ONE, kind: 'resume' }]);
    await anna.round();
    for (const release of released.values()) release();
    await following.left(anna.leased.all());
    following.resumeIfValid(anna.leased.all());
    await anna.round(false, 0);
    expect(await commands.answerOf(commandId)).toEqual({});
    expect(anna.taken.slice(2 * times)).toEqual([ONE, TWO]);
    const line = ['jobs paused, lease possibly expired', 'jobs resumed'];
    expect(anna.lines.slice(1)).toEqual(times === 1 ? line : [...line, ...line]);
  }
});

annaTest('a job whose release was committed without a response is not resumed', [1, 2], async (anna) => {
  const writeAnd = anna.handover.writeAnd.bind(anna.handover);
  vi.spyOn(anna.handover, 'writeAnd').mockImplementationOnce(async (jobs, work) => {
    expect(anna.ended, 'their keys are revoked before').toEqual([ONE, TWO]);
    await writeAnd(jobs.slice(0, 1), work);
    throw new JobtailError('fleet', 'no response');
  });
  await expect(anna.round(true)).rejects.toThrow('no response');
  expect(anna.leased.all('paused')).toHaveLength(2);
  const { own } = await anna.joined.agents.report(anna.member, { ...REPORT, isDraining: true });
  anna.rounds.following.resumeIfValid(own);
  expect([anna.taken, anna.leased.all('paused').map(({ jobId }) => jobId)]).toEqual([[ONE, TWO, TWO], [ONE]]);
});

annaTest('a command that comes while a job is finished is executed', [1], async (anna) => {
  const { commands } = anna.joined;
  anna.store.jobs.setState(ONE, 'settled');
  anna.acts.release = async () => void (await commands.give([{ jobId: ONE, kind: 'resume' }]));
  await anna.round();
  anna.rounds.following.resumeIfValid(anna.leased.all());
  await anna.round();
  expect([anna.taken, anna.store.jobs.get(ONE)?.state]).toEqual([[ONE, ONE], 'watched']);
});

annaTest('an agent that stops gives nothing away that it may still write', [1], async (anna, fleet) => {
  // It stops while the round that would hand the job off executes a command.
  anna.acts.refresh = () => {
    anna.attached.follower = undefined;
  };
  await anna.joined.commands.give([{ jobId: ONE, kind: 'resume' }]);
  await anna.round(true);
  expect([anna.leased.all('following').length, anna.ended]).toEqual([1, []]);
  expect(await fleet.query('SELECT how FROM jobtail.attempts')).toEqual([{ how: null }]);
});

annaTest('a job that is lost is forgotten after its release, and is not acquired before', [1], async (anna, fleet) => {
  const { commands } = anna.joined;
  await commands.give([{ jobId: ONE, kind: 'sync' }]);
  for (const times of [1, 2]) {
    await anna.round();
    expect(anna.store.requests.open('pass')).toHaveLength(1);
    let release = () => {};
    anna.acts.release = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    await fleet.query('UPDATE jobtail.jobs SET owner = NULL, attempt = attempt + 1, waiting_since = now()');
    const row = { polledAt: times, grownAt: times, refused: 0, failures: 0, error: null };
    anna.store.jobs.endRun(ONE, row);
    await anna.handover.write(anna.leased.all('following'));
    expect([anna.rounds.following.lostJobs, anna.leased.size]).toEqual([times, 0]);
    const next = anna.round();
    await until('it to be acquired', () => anna.leased.size === 1);
    expect([anna.taken.length, anna.store.jobs.get(ONE)?.polledAt]).toEqual([times, times]);
    expect(anna.ended).toHaveLength(times - 1);
    let revoke = () => {};
    const revoking = new Promise<void>((begun) => {
      anna.acts.endTransfer = () =>
        new Promise((resolve) => {
          revoke = resolve;
          begun();
        });
    });
    release();
    await revoking;
    // It is left only when its key was revoked.
    const left = anna.rounds.following.left(anna.leased.all()).then(() => anna.ended.length);
    await new Promise((resolve) => setImmediate(resolve));
    revoke();
    expect(await left).toBe(times);
    await next;
    expect([anna.taken.length, anna.ended.length]).toEqual([times + 1, times]);
  }
  // What goes wrong with a job that is lost is reported, and it is acquired again.
  anna.acts.release = () => Promise.reject(new JobtailError('disk-full', 'no room for its last bytes'));
  anna.rounds.following.lost(anna.leased.all());
  await fleet.query('UPDATE jobtail.jobs SET owner = NULL, waiting_since = now()');
  await until('the failure', () => anna.failures.length > 0);
  await anna.round();
  expect([anna.failures, anna.taken.length]).toEqual([['no room for its last bytes'], 4]);
});

fleetTest('a job that the database has for an agent is acquired, another one forgotten', async (fleet) => {
  const anna = await agentOf(fleet, 'anna');
  await anna.joined.commands.give(watches(1, 2));
  await anna.round(false, 0);
  expect(anna.taken).toEqual([ONE, TWO]);
  // A call whose response was lost.
  const [{ jobId: third }, { jobId: former }] = [orderFor(3), orderFor(4)];
  await anna.joined.commands.give(watches(3));
  await fleet.query(`UPDATE jobtail.jobs SET owner = 'anna', attempt = 1, waiting_since = NULL WHERE job_id = '3'`);
  anna.store.jobs.watch(orderFor(4), 0);
  const leaseId = anna.store.leases.ask(former, 1);
  anna.store.leases.open({ ...GRANT, leaseId }, 1);
  await anna.round(false, LEASE_MS - 1);
  expect([anna.taken, anna.store.jobs.get(former)?.state]).toEqual([[ONE, TWO], 'watched']);
  anna.store.leases.end(leaseId, 1, null);
  await anna.round(false, 1);
  await until('it to be forgotten', () => anna.store.jobs.get(former) === undefined);
  expect(anna.taken).toEqual([ONE, TWO, third]);
  // The next process continues with those whose rows are here.
  const next = await agentOf(fleet, 'anna');
  next.store.jobs.watch(orderFor(2), 0);
  next.store.fleetLeases.save({ jobId: TWO, attempt: 1 });
  await next.rounds.taking.begin();
  expect(next.leased.all().map(({ jobId }) => jobId)).toEqual([TWO]);
});

fleetTest('an agent acquires its share of the jobs, and no more in the next round', async (fleet) => {
  const [anna, bert] = [await agentOf(fleet, 'anna'), await agentOf(fleet, 'bert')];
  await anna.joined.commands.give(watches(1, 2, 3, 4));
  for (let rounds = 0; rounds < 2; rounds++) await anna.round();
  expect([anna.taken.length, anna.leased.size]).toEqual([2, 2]);
  await bert.round();
  expect(bert.taken).toHaveLength(2);
  // Of many, fifty at once, and the others in the next round.
  await anna.joined.commands.give(watches(...Array.from({ length: 140 }, (_, index) => index + 5)));
  expect([await anna.round(), anna.leased.size, await anna.round(), anna.leased.size]).toEqual([true, 52, false, 72]);
});

annaTest(
  'an agent releases no more jobs than others have room for, until they report anew',
  [1, 2, 3, 4, 5, 6],
  async (anna) => {
    const summary = async (): Promise<FleetSummary> => ({
      ...(await anna.joined.agents.report(anna.member, { ...REPORT, isDraining: false })),
      // Of a moment before it acquired them.
      agents: [0, 2].map((jobs, index) => ({ name: ['anna', 'bert'][index] ?? '', mostJobs: 10, jobs })),
    });
    const left: number[] = [];
    for (const found of [await summary(), await summary()])
      for (let rounds = 0; rounds < 3; rounds++) {
        await anna.rounds.round(found, false, true);
        left.push(anna.leased.size);
      }
    expect(left).toEqual([5, 5, 5, 4, 4, 4]);
  },
);

annaTest('a drained agent also releases jobs that it does not follow, if it can', [1, 2], async (anna, fleet) => {
  // A command that is executed is not executed again by the next owner.
  await anna.joined.commands.give([{ jobId: ONE, kind: 'unwatch' }]);
  await anna.round();
  expect(anna.store.jobs.get(ONE)?.state).toBe('ending');
  anna.store.jobs.setState(ONE, 'ended');
  anna.acts.release = () => Promise.reject(new JobtailError('disk-full', 'no room'));
  for (let times = 0; times < 2; times++) {
    await expect(anna.round(true)).rejects.toThrow('no room');
    expect(anna.leased.all('paused')).toHaveLength(2);
  }
  anna.acts.release = async () => {};
  const session = await fleet.session();
  await session.query('LISTEN jobtail_orders');
  const woken = once(session as unknown as EventEmitter, 'notification');
  await anna.round(true);
  await woken;
  expect([anna.leased.size, anna.ended]).toEqual([0, [ONE, TWO]]);
  // After a restored backup.
  const summary = await anna.joined.agents.report(anna.member, { ...REPORT, isDraining: false });
  await anna.rounds.round(summary, false, false);
  expect(anna.leased.size).toBe(0);
  await anna.round();
  expect(anna.store.jobs.get(ONE)?.state).toBe('ended');
  expect(anna.store.fleetLeases.all()).toEqual([ONE, TWO].map((jobId) => ({ jobId, attempt: 2 })));
});

fleetTest('a job whose rows cannot be stored waits behind the others', async (fleet) => {
  const anna = await agentOf(fleet, 'anna');
  await anna.joined.commands.give(watches(1, 2));
  const [bring, errors] = [anna.handover.bring.bind(anna.handover), [] as Error[]];
  vi.spyOn(anna.handover, 'bring').mockImplementation(async (jobs) => {
    const [error] = errors;
    if (error !== undefined && jobs.some(({ jobId }) => jobId === ONE)) throw error;
    await bring(jobs);
    // Another agent has it by now.
    if (jobs.some(({ jobId }) => jobId === ONE) && anna.taken.length === 1) anna.rounds.following.lost(jobs);
  });
  const full = new JobtailError('disk-full', 'no room left');
  for (const error of [full, new JobtailError('internal', 'a mistake')]) {
    errors[0] = error;
    await anna.round();
  }
  expect([anna.taken, anna.leased.all().map(({ jobId }) => jobId)]).toEqual([[TWO], [TWO, ONE]]);
  expect([anna.failures, anna.readiness.capacity(9)]).toEqual([['a mistake'], 0]);
  errors[0] = new JobtailError('fleet', 'the database is away');
  await expect(anna.round()).rejects.toThrow('the database is away');
  errors.length = 0;
  await anna.round();
  expect([anna.taken, anna.leased.all().map(({ jobId }) => jobId)]).toEqual([[TWO], [TWO]]);
  const poll = () => {
    anna.store.jobs.endRun(TWO, {
      polledAt: 1 + anna.clock.now(),
      grownAt: null,
      refused: 0,
      failures: 0,
      error: null,
    });
    return anna.readiness.capacity(9);
  };
  expect([anna.readiness.capacity(9), poll()]).toEqual([1, 9]);
});

fleetTest('what is due for the whole fleet is done twice a minute, or after a notification', async (fleet) => {
  const anna = await agentOf(fleet, 'anna');
  const { database, commands } = anna.joined;
  const rule = (maxJobs: number) => ({
    ...({ source: 'command', since: 0, maxAgeMs: 1, include: ['a'], exclude: [], maxJobs } as const),
  });
  const setRule = async (maxJobs: number | undefined) => {
    await database.query('DELETE FROM {s}.rules');
    if (maxJobs !== undefined)
      await database.query('INSERT INTO {s}.rules (rule) VALUES ($1)', [JSON.stringify(rule(maxJobs))]);
  };
  const maxJobs = async (afterMs: number) => {
    await anna.round(false, afterMs);
    return anna.store.watchMine.of('command')?.maxJobs;
  };
  await setRule(1);
  expect([await maxJobs(0), anna.acts.refreshes]).toEqual([1, 1]);
  await setRule(2);
  expect(await maxJobs(1_000)).toBe(1);
  anna.rounds.noticed();
  expect(await maxJobs(1_000)).toBe(2);
  // A malformed one changes nothing.
  await database.query(`UPDATE {s}.rules SET rule = '{"include": 5}'`);
  anna.rounds.noticed();
  expect(await maxJobs(1_000)).toBe(2);
  await setRule(undefined);
  expect(await maxJobs(1_000)).toBe(2);
  await fleet.query(`INSERT INTO jobtail.attempts (job_id, attempt, agent, taken_at, ended_at)
    VALUES ('1', 0, 'bert', now() - interval '32 days', now() - interval '31 days')`);
  await commands.give([...watches(1), ...watches(3)]);
  const days = `(CASE job_id WHEN '1' THEN 31 ELSE 29 END)`;
  await fleet.query(`UPDATE jobtail.orders SET answer = '{}', made_at = made_at - ${days} * interval '1 day'`);
  // Of another agent, which has no answer yet.
  await agentOf(fleet, 'bert');
  await commands.give(watches(2));
  await fleet.query(`UPDATE jobtail.jobs SET owner = 'bert', attempt = 1, waiting_since = NULL WHERE job_id = '2'`);
  await fleet.query(`UPDATE jobtail.orders SET made_at = made_at - interval '31 days' WHERE job_id = '2'`);
  const given = async () =>
    (await fleet.query<{ job_id: string }>('SELECT job_id FROM jobtail.orders')).map((row) => row.job_id);
  anna.store.capabilities.set('batch', '5');
  expect(await given()).toEqual(['1', '3', '2']);
  expect([await maxJobs(26_000), await given(), anna.acts.refreshes]).toEqual([undefined, ['3', '2'], 3]);
  expect(await fleet.query('SELECT agent FROM jobtail.attempts')).toEqual([{ agent: 'anna' }]);
  expect(await fleet.query('SELECT name, value FROM jobtail.habits')).toEqual([{ name: 'batch', value: '5' }]);
});

fleetTest('jobs of a configuration are followed until no configuration has them', async (fleet) => {
  const anna = await agentOf(fleet, 'anna');
  const configure = async (...numbers: number[]) => {
    anna.attached.configured = numbers.map((number) => ({ ...orderFor(number), source: 'config' }) as const);
    for (let rounds = 0; rounds < 2; rounds++) await anna.round();
    return Object.fromEntries(anna.store.jobs.states());
  };
  expect(await configure(1, 2, 3, 4)).toEqual({ 1: 'watched', 2: 'watched', 3: 'watched', 4: 'watched' });
  // Someone wants it, whatever the configuration has.
  anna.store.jobs.watch({ ...orderFor(4), source: 'command' }, 0);
  // Of two other agents: one stopped a moment ago, the other one a week.
  for (const [name, days] of Object.entries({ bert: 0, carl: 8 })) {
    const { joined, member } = await agentOf(fleet, name);
    await joined.agents.leave(member);
    await fleet.query('UPDATE jobtail.agents SET seen_at = now() - $2 * interval $$1 day$$ WHERE name = $1', [
      name,
      days,
    ]);
  }
  await fleet.query(
    `INSERT INTO jobtail.configured SELECT name, job_id, job_order FROM jobtail.configured,
     (VALUES ('bert', '2'), ('carl', '1')) AS other (name, id) WHERE job_id = id`,
  );
  await anna.round();
  expect(await configure(3)).toEqual({ 1: 'ending', 2: 'watched', 3: 'watched', 4: 'watched' });
  // A configuration that is in force is not placed again.
  await fleet.query(`DELETE FROM jobtail.configured WHERE agent = 'anna'`);
  await anna.round();
  expect(await fleet.query('SELECT agent FROM jobtail.configured')).toEqual([{ agent: 'bert' }]);
  // A command overrules it.
  anna.store.jobs.unwatch(orderFor(3).jobId, 'ended');
  await anna.round();
  expect(await configure(2, 3)).toEqual({ 1: 'ending', 2: 'watched', 4: 'watched' });
  expect(anna.lines.filter((line) => line === 'configured job not followed')).toHaveLength(1);
  // One that cannot be placed is placed by the next round.
  vi.spyOn(anna.joined.commands, 'giveWithin').mockRejectedValueOnce(new JobtailError('fleet', 'it is away'));
  anna.attached.configured = [{ ...orderFor(5), source: 'config' }];
  await expect(anna.round()).rejects.toThrow('it is away');
  for (let rounds = 0; rounds < 2; rounds++) await anna.round();
  expect(anna.store.jobs.get(orderFor(5).jobId)?.state).toBe('watched');
});
