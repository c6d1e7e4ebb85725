/** One lease an agent: who takes jobs, who is offered none, and what keeps a lease alive. */
import { expect, it } from 'vitest';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { FleetParts, fastClock, orderFor } from '../../support/fleet-parts.ts';
import { needs } from '../../support/needs.ts';
import type { WithEnd } from '../../support/temp-directory.ts';

const OPTIONS = { ...PATIENCE, ...needs('postgres') };

async function fleetWith(test: WithEnd, jobs: number) {
  const fleet = await FleetParts.make(test);
  const joined = await fleet.join('command');
  const watch = async (from: number, to: number) => {
    for (let number = from; number <= to; number++) {
      const body = orderFor(number);
      await joined.commands.give([{ jobId: body.jobId, kind: 'watch', body }]);
    }
  };
  await watch(1, jobs);
  const agent = async (name: string) => (await joined.register.all()).find((one) => one.name === name);
  /** As `until`, while each agent reports at each look, not only when its next heartbeat is due. */
  const soon = (what: string, look: () => boolean | Promise<boolean>) =>
    until(what, async () => {
      await joined.commands.notify(joined.database);
      return await look();
    });
  return { fleet, ...joined, watch, agent, soon };
}

/** Pauses of an agent pass in a hundredth of their time, its lease is as long as it is. */
const FAST = { clock: fastClock(100), heartbeatMs: 1_000_000 };

it.concurrent(
  'an agent that cannot work hands its jobs over, is given none, says why, and gets its share again',
  OPTIONS,
  async (test) => {
    const { fleet, watch, agent, soon } = await fleetWith(test, 6);
    let trouble: string | undefined = 'the service cannot be reached';
    const anna = fleet.start('anna', { ...FAST, unready: () => trouble });
    // As the only one it keeps what there is.
    await soon('all to be followed', () => anna.followed.size === 6);
    await soon('it to say what it lacks', async () => (await agent('anna'))?.lacks === trouble);
    const ben = fleet.start('ben', {});
    await soon('the other one to follow all', () => ben.followed.size === 6);
    await soon('it to follow none', () => anna.followed.size === 0);
    await watch(7, 9);
    await soon('the other one to follow new ones, too', () => ben.followed.size === 9);
    expect(anna.log.filter(({ message }) => message === 'agent not ready')).toHaveLength(1);
    trouble = undefined;
    await soon('it to have its share again', () => anna.followed.size >= 4);
    expect((await agent('anna'))?.lacks).toBeNull();
  },
);

it.concurrent(
  'an agent that does not take what it is offered is passed over, longer each time, and keeps what it has',
  OPTIONS,
  async (test) => {
    const { fleet, database, register, soon } = await fleetWith(test, 4);
    // Alive, with room, and deaf: it beats without rounds.
    const about = { host: 'here', pid: 1, version: '0', view: null };
    const deaf = {
      name: 'deaf',
      stateId: 'deaf',
      instance: 'deaf',
      mostJobs: 100,
      leaseMs: 600_000,
      mirror: 'shared',
      about,
    };
    expect(await register.join(deaf)).toBe(true);
    const anna = fleet.start('anna', {});
    // What waits and what has taken nothing does so for some seconds longer than it did.
    const later = async () => {
      await database.query(`UPDATE {s}.jobs SET waiting_since = waiting_since - interval '5 s'`);
      await database.query(`UPDATE {s}.agents SET took_at = took_at - interval '5 s' WHERE name = 'deaf'`);
    };
    await until('anna to be in', async () => (await register.all()).length === 2);
    await later();
    await soon('all to be followed', () => anna.followed.size === 4);
    const row = async () => {
      const [found] = await database.query<{ passedOver: number; restMs: number }>(
        `SELECT passed_over AS "passedOver", extract(epoch FROM rests_until - now())::float8 * 1000 AS "restMs"
       FROM {s}.agents WHERE name = 'deaf'`,
      );
      return found ?? { passedOver: 0, restMs: 0 };
    };
    expect((await row()).passedOver).toBe(1);
    // Jobs are not handed over for it to take them.
    const reported = new Set<number>();
    await soon('some rounds', async () => {
      for (const { name, seenAt } of await register.all()) if (name === 'anna') reported.add(seenAt);
      return reported.size > 10;
    });
    expect(await database.query('SELECT 1 FROM {s}.attempts WHERE attempt > 1')).toEqual([]);
    await database.query(`UPDATE {s}.agents SET rests_until = now() WHERE name = 'deaf'`);
    await soon('it to be offered some again', () => anna.followed.size < 4);
    await soon('it to be passed over again', async () => {
      await later();
      return (await row()).passedOver === 2;
    });
    await soon('all to be followed again', () => anna.followed.size === 4);
    expect((await row()).restMs).toBeGreaterThan(15_000);
  },
);

it.concurrent(
  'a heartbeat waits for no data: the lease is renewed while every row of jobs is held',
  OPTIONS,
  async (test) => {
    const { fleet, commands, database } = await fleetWith(test, 3);
    const anna = fleet.start('anna', { clock: fastClock(10), heartbeatMs: 100_000 });
    await until('all to be followed', () => anna.followed.size === 3);
    const session = await fleet.session();
    await session.query('BEGIN');
    await session.query('SELECT 1 FROM jobtail.jobs FOR NO KEY UPDATE');
    const { jobId } = orderFor(1);
    await fleet.query(`INSERT INTO jobtail.orders (job_id, kind) VALUES ($1, 'resume')`, [jobId]);
    await commands.notify(database);
    const seenAt = async () => (await fleet.query<{ at: Date }>('SELECT seen_at AS at FROM jobtail.agents'))[0]?.at;
    for (let renewed = 0; renewed < 2; renewed++) {
      const before = (await seenAt())?.getTime();
      await until('the lease to be renewed', async () => (await seenAt())?.getTime() !== before);
    }
    expect(anna.member.numbers).toMatchObject({ lost: 0, jobs: 3 });
    expect(anna.followed.size).toBe(3);
    await session.query('COMMIT');
  },
);

it.concurrent('an agent whose row is of an older backup, or missing, joins again', OPTIONS, async (test) => {
  const { fleet, soon } = await fleetWith(test, 2);
  const anna = fleet.start('anna', {});
  await until('both to be followed', () => anna.followed.size === 2);
  let failure: unknown;
  anna.member.failed.catch((error: unknown) => {
    failure = error;
  });
  const instance = async () =>
    (await fleet.query<{ instance: string }>('SELECT instance FROM jobtail.agents'))[0]?.instance;
  const own = await instance();
  await fleet.query(`UPDATE jobtail.agents SET instance = 'of an earlier process'`);
  await soon('it to be back', async () => (await instance()) === own);
  await fleet.query('DELETE FROM jobtail.agents');
  await soon('it to be back again', async () => (await instance()) === own);
  await soon('both to be followed again', () => anna.followed.size === 2);
  expect(failure).toBeUndefined();
  // Of another state, seen just now: the name is taken.
  await fleet.query(`UPDATE jobtail.agents SET instance = 'another', state_id = 'another'`);
  await until('it to end', () => failure !== undefined);
  expect(String(failure)).toContain('another agent of the fleet is called anna (host here, pid');
});

it.concurrent('a job taken by a call whose answer was lost is followed', OPTIONS, async (test) => {
  const { fleet, soon } = await fleetWith(test, 1);
  const anna = fleet.start('anna', {});
  await until('one to be followed', () => anna.followed.size === 1);
  await fleet.query(`INSERT INTO jobtail.jobs (job_id, owner, attempt) VALUES ('2', 'anna', 1)`);
  await fleet.query(`INSERT INTO jobtail.orders (job_id, kind, body) VALUES ('2', 'watch', $1)`, [orderFor(2)]);
  await soon('the other to be followed, too', () => anna.followed.size === 2);
});

it.concurrent('agents that start at once on an empty database log no error', OPTIONS, async (test) => {
  const fleet = await FleetParts.make(test);
  const members = ['anna', 'ben', 'cleo', 'dora'].map((name) => fleet.start(name, {}));
  for (const { log } of members)
    await until('it to be in', () => log.some(({ message }) => message === 'joined the fleet'));
  for (const { log } of members) expect(log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});

it.concurrent(
  'an agent that does not see the mirrors of the others is refused, unless each has its own',
  OPTIONS,
  async (test) => {
    const fleet = await FleetParts.make(test);
    const anna = fleet.start('anna', {});
    await until('the first one to be in', () => anna.log.some(({ message }) => message === 'joined the fleet'));
    const ben = fleet.start('ben', { mirror: 'another' });
    await expect(ben.member.failed).rejects.toThrow(
      'the mirror directory of this machine is not that of the agent anna',
    );
    const cleo = fleet.start('cleo', { mirror: 'another', separateMirrors: true });
    await until('it to be in', () => cleo.log.some(({ message }) => message === 'joined the fleet'));
  },
);
