/** The simulated PostgreSQL equals a real one: random operations of two agents have the same results on both. */
import { expect, test } from 'vitest';
import type { LeasedJob } from '../../../../src/fleet/agents/agents.ts';
import { FleetJobs } from '../../../../src/fleet/commands/fleet-jobs.ts';
import { type Joined, openFleet } from '../../../../src/fleet/joined.ts';
import { rowsOfJobs, writeRows } from '../../../../src/fleet/rows/handover.ts';
import type { JobId } from '../../../../src/job.ts';
import type { PortableRow } from '../../../../src/store/portable-rows.ts';
import { FleetParts, memberOf, orderFor } from '../../../support/fleet-parts.ts';
import { needs } from '../../../support/needs.ts';
import { Chance } from '../../chance.ts';
import { SimulatedProcess, SimulatedTime } from '../../time.ts';
import { SimulatedPostgres } from '../postgres.ts';
import { keyOf } from '../tables.ts';

const NAMES = ['anna', 'ben'] as const;
const [JOBS, STEPS] = [5, 120];
const LEASE_MS = 600_000;
/** More than there are: the moments of the two databases differ. */
const MAX_TAKEN = 10;

/** One of the two databases, with two agents on it. */
interface Side {
  readonly joined: Readonly<Record<string, Joined>>;
  /** The last heartbeat of an agent was so long ago. */
  readonly age: (name: string, ms: number) => Promise<unknown>;
  /** Runs an operation, while time passes. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T>;
  readonly end: () => Promise<void>;
}

type Operation = (side: Side) => Promise<unknown>;

async function realSide(): Promise<Side> {
  const fleet = await FleetParts.make();
  const joined: Record<string, Joined> = {};
  for (const name of NAMES) joined[name] = await openFleet(fleet.address, name, agentOf(name));
  const age = async (name: string, ms: number) =>
    void (await fleet.query(`UPDATE jobtail.agents SET seen_at = seen_at - $2 * interval '1 ms' WHERE name = $1`, [
      name,
      ms,
    ]));
  return {
    joined,
    age,
    run: (work) => work(),
    end: async () => void (await Promise.all(NAMES.map((name) => joined[name]?.close()))),
  };
}

async function simulatedSide(): Promise<Side> {
  const time = new SimulatedTime(() => new Promise((resolve) => setImmediate(resolve)));
  const postgres = new SimulatedPostgres(time, new Chance(1, 'database'));
  const process = new SimulatedProcess();
  const begun = performance.now();
  const run = async <T>(work: () => Promise<T>): Promise<T> => {
    // As much time has passed here as there.
    await time.passUntil(performance.now() - begun);
    let isOver = false;
    const done = work().finally(() => {
      isOver = true;
    });
    done.catch(() => {});
    while (!isOver) await time.pass(1);
    return done;
  };
  const address = postgres.address({ process, clock: time.clockOf(process), way: { out: true, back: true } });
  const joined: Record<string, Joined> = {};
  for (const name of NAMES) joined[name] = await run(() => openFleet(address, name, agentOf(name)));
  const age = async (name: string, ms: number) => {
    const agents = postgres.tables.of('agents');
    const row = agents.get(keyOf(name));
    if (row !== undefined) agents.set(keyOf(name), { ...row, seen_at: Number(row['seen_at']) - ms });
  };
  return { joined, age, run, end: async () => {} };
}

const agentOf = (name: string) => ({ instance: `${name} 1`, onNotice: () => {}, onConnect: () => {} });

const memberWith = (name: string, state: number) =>
  memberOf(name, {
    stateId: `state ${name} ${state}`,
    instance: `${name} 1`,
    mostJobs: 3,
    leaseMs: LEASE_MS,
    mirror: 'shared',
  });

/** Without what depends on the moment, and in one order. */
function plain(found: unknown): unknown {
  const text = JSON.stringify(found, (key, value: unknown) => {
    if (/^(waitingMs|startedAt|seenAt|madeAt)$/.test(key)) return undefined;
    if (value instanceof Map || value instanceof Set) return plain([...value]);
    return Array.isArray(value) ? value.map((one) => plain(one)).sort() : value;
  });
  return text ?? 'nothing';
}

function operation(chance: Chance): readonly [what: string, Operation] {
  const name = chance.among(NAMES);
  const other = NAMES.find((one) => one !== name) ?? name;
  const number = chance.whole(1, JOBS);
  const jobId = String(number) as JobId;
  const kind = chance.among(['watch', 'unwatch', 'end', 'sync', 'resume'] as const);
  const state = chance.among(['watched', 'ending', 'settled', 'ended']);
  const end = chance.among([null, 'handed-over', 'done'] as const);
  const [ageMs, isDraining] = [chance.among([5_000, 700_000]), chance.is(0.2)];
  const capacity = chance.whole(0, 3);
  const on = (side: Side, who = name) => side.joined[who] as Joined;
  const row = (table: PortableRow['table'], value: object | null): PortableRow => ({
    ...{ jobId, table, key: '[]', row: value === null ? null : JSON.stringify({ job_id: jobId, ...value }) },
  });
  const ownedOf = async (side: Side): Promise<LeasedJob[]> => on(side).claims.owned();
  const fenced = async (side: Side, work: () => Promise<unknown> = async () => {}) => {
    const { claims } = on(side);
    let meanwhile: unknown;
    const owned = await claims.fenced(await ownedOf(side), async (sql, jobs) => {
      meanwhile = await work();
      const written = jobs.filter((job) => job.jobId === jobId);
      const kept = row('job_information', chance.is(0.5) ? { reported_at: 1 } : null);
      await writeRows(
        sql,
        written.flatMap(() => [row('jobs', { state, source: 'command' }), kept]),
      );
      if (end !== null && written.length > 0) await claims.end(sql, written, end);
    });
    return [owned, meanwhile];
  };
  const report = { pollAgeMs: 5, callsLastMinute: 1, isDraining, capacity, lacks: null, notFollowed: 0 };
  const all: Readonly<Record<string, Operation>> = {
    command: (side) => on(side).commands.give([{ jobId, kind, body: kind === 'watch' ? orderFor(number) : null }]),
    join: (side) => on(side).agents.join(memberWith(name, 1)),
    'join with another state': (side) => on(side).agents.join(memberWith(name, 2)),
    report: (side) => on(side).agents.report(memberWith(name, 1), report),
    leave: (side) => on(side).agents.leave(memberWith(name, 1)),
    agents: (side) => on(side).agents.all(),
    'other mirror': (side) => on(side).agents.requireSameMirror({ ...memberWith(name, 1), mirror: 'own' }),
    age: (side) => side.age(name, ageMs),
    take: (side) => on(side).claims.take(MAX_TAKEN),
    owned: ownedOf,
    free: (side) => on(side).claims.freeSilent(),
    fenced,
    'take beside': (side) => fenced(side, () => on(side, other).claims.take(MAX_TAKEN)),
    'free beside': (side) => fenced(side, () => on(side, other).claims.freeSilent()),
    'open commands': (side) => on(side).commands.openOf(name, [], 10),
    settle: async (side) => {
      const { commands, database } = on(side);
      const open = await commands.openOf(name, [], 1);
      const answer = chance.is(0.5) ? {} : null;
      await commands.settle(
        database,
        open.map(({ commandId }) => ({ commandId, answer })),
      );
      return [open, await commands.withoutOpen(database, [{ jobId, attempt: 1 }]), await commands.answerOf('1')];
    },
    rows: async (side) => {
      const found: unknown[] = [];
      for await (const page of rowsOfJobs(on(side).database, ['1', '2', jobId] as JobId[])) found.push(page);
      return found;
    },
    'known jobs': async (side) => {
      const knownJobs = new FleetJobs(() => on(side));
      return [await knownJobs.ids(), await knownJobs.settled(), await knownJobs.follow([orderFor(number)], 3)];
    },
  };
  const what = chance.among(Object.keys(all));
  return [`${name} ${what} ${jobId}`, all[what] as Operation];
}

test.each([1, 2, 3])('has the same results (seed %d)', needs('postgres'), async (seed) => {
  const [real, simulated] = [await realSide(), await simulatedSide()];
  const done: string[] = [];
  // What is drawn within an operation is drawn again for the other one.
  for (let step = 0; step < STEPS; step += 1) {
    const [what, onReal] = operation(new Chance(seed * 1_000 + step, 'operation'));
    const [, onSimulated] = operation(new Chance(seed * 1_000 + step, 'operation'));
    const failure = (error: Error) => `fails: ${error.message}`;
    const expected = plain(await real.run(() => onReal(real)).catch(failure));
    done.push(`${what}: ${String(expected)}`);
    expect(plain(await simulated.run(() => onSimulated(simulated)).catch(failure)), done.slice(-30).join('\n')).toEqual(
      expected,
    );
  }
  await real.end();
  await simulated.end();
});
