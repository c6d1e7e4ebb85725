/** What a fleet costs, and how long jobs are without an owner. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGENTS, FleetPlace } from './fleet-place.ts';
import { query } from './fleet-query.ts';
import type { Figures, Measurement, Place } from './measurement.ts';
import { usageOf } from './processes.ts';
import { startMiddleware } from './watching.ts';

const FILE_BYTES = 3_000;
const MINUTE_MS = 60_000;

/** What PostgreSQL did so far, by its own counts. */
async function countsOf(url: string) {
  const [row] = await query<{ readonly wal: number; readonly transactions: number }>(
    url,
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal, (xact_commit + xact_rollback)::float8 AS transactions
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return row ?? { wal: 0, transactions: 0 };
}

/** 2,000 jobs whose files do not grow, with the default polls: what they cost PostgreSQL. */
export const fleetRest: Measurement = {
  name: 'fleet-rest',
  needs: [],
  goals: [
    {
      what: '2,000 quiet jobs of a fleet, polled each minute: transactions of PostgreSQL a second',
      ...{ kind: 'limit', figure: 'transactionsPerSecond', ours: 'rest', atMost: 8.6 },
    },
    {
      what: 'the same: bytes of its write-ahead log a second (1 GB a day)',
      ...{ kind: 'limit', figure: 'walBytesPerSecond', ours: 'rest', atMost: 11_600 },
    },
  ],
  prepare: async (place) => {
    const jobs = place.quick ? 100 : 2_000;
    const seconds = place.quick ? 5 : 120;
    const { fleet, close } = await startFleet(place, { jobs, intervalSeconds: 60, requestsPerMinute: 1_000_000 });
    const rest = async (): Promise<Figures> => {
      const before = await countsOf(fleet.database.url);
      await sleep(seconds * 1_000);
      const after = await countsOf(fleet.database.url);
      return {
        transactionsPerSecond: (after.transactions - before.transactions) / seconds,
        walBytesPerSecond: (after.wal - before.wal) / seconds,
      };
    };
    // What follows their start: the first polls, and their rows.
    await sleep(place.quick ? 2_000 : 150_000);
    return { sides: { rest }, close };
  },
};

async function startFleet(place: Place, setting: { jobs: number; intervalSeconds: number; requestsPerMinute: number }) {
  const fleet = await FleetPlace.make(path.join(place.directory, 'fleet'));
  const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
  const whole = { ...setting, middleware, heartbeatSeconds: place.quick ? 10 : 15 };
  await fleet.start(whole);
  const close = async () => {
    await fleet.stop();
    await middleware.stop();
  };
  return { fleet, middleware, setting: whole, close };
}

export const fleetTakeover: Measurement = {
  name: 'fleet-takeover',
  needs: [],
  goals: [
    {
      what: '300 jobs of a fleet, one of three agents killed: until the last of its jobs has another owner',
      ...{ kind: 'limit', figure: 'seconds', ours: 'kill', atMost: 30 },
    },
    {
      what: 'the same, the agent stopped (SIGSTOP)',
      ...{ kind: 'limit', figure: 'seconds', ours: 'stop', atMost: 30 },
    },
  ],
  prepare: async (place) => {
    const jobs = place.quick ? 30 : 300;
    const { fleet, setting, close } = await startFleet(place, {
      jobs,
      intervalSeconds: 5,
      requestsPerMinute: 1_000_000,
    });
    const without = async (signal: 'SIGKILL' | 'SIGSTOP'): Promise<Figures> => {
      await fleet.untilOwned(jobs, AGENTS);
      const [, ben] = AGENTS;
      const { pid, stop } = fleet.agent(ben);
      process.kill(pid, signal);
      const startedMs = performance.now();
      await fleet.untilOwned(
        jobs,
        AGENTS.filter((name) => name !== ben),
      );
      const seconds = (performance.now() - startedMs) / 1_000;
      await stop('SIGKILL');
      fleet.begin(ben, setting);
      return { seconds };
    };
    return { sides: { kill: () => without('SIGKILL'), stop: () => without('SIGSTOP') }, close };
  },
};

export const fleetLeases: Measurement = {
  name: 'fleet-leases',
  needs: [],
  goals: [
    {
      what: '2,000 jobs of a fleet that are not polled: of one core, for PostgreSQL',
      ...{ kind: 'limit', figure: 'serverCoreShare', ours: 'leases', atMost: 0.05 },
    },
    {
      what: 'the same, for the three agents together',
      ...{ kind: 'limit', figure: 'agentsCoreShare', ours: 'leases', atMost: 0.05 },
    },
  ],
  prepare: async (place) => {
    const jobs = place.quick ? 100 : 2_000;
    const seconds = place.quick ? 5 : 30;
    const { fleet, close } = await startFleet(place, { jobs, intervalSeconds: 3_600, requestsPerMinute: 1_000_000 });
    const leases = async (): Promise<Figures> => {
      const used = () => ({
        server: usageOf(fleet.database.pid ?? 0).cpuSeconds,
        agents: AGENTS.reduce((sum, name) => sum + usageOf(fleet.agent(name).pid).cpuSeconds, 0),
      });
      const before = used();
      await sleep(seconds * 1_000);
      const after = used();
      return {
        serverCoreShare: (after.server - before.server) / seconds,
        agentsCoreShare: (after.agents - before.agents) / seconds,
      };
    };
    // What follows their start, and the first poll of each.
    await sleep(place.quick ? 2_000 : 30_000);
    return { sides: { leases }, close };
  },
};

export const fleetBudget: Measurement = {
  name: 'fleet-budget',
  needs: [],
  goals: [
    {
      what: 'calls of three agents that want far more, against 600 a minute together',
      ...{ kind: 'limit', figure: 'budgetShare', ours: 'budget', atMost: 1.02 },
    },
  ],
  prepare: async (place) => {
    const requestsPerMinute = 600;
    const jobs = place.quick ? 30 : 300;
    const seconds = place.quick ? 5 : 60;
    const { middleware, close } = await startFleet(place, { jobs, intervalSeconds: 1, requestsPerMinute });
    const budget = async (): Promise<Figures> => {
      await middleware.reset();
      const startedMs = performance.now();
      await sleep(seconds * 1_000);
      const { calls } = await middleware.figures();
      return { budgetShare: calls / ((requestsPerMinute * (performance.now() - startedMs)) / MINUTE_MS) };
    };
    return { sides: { budget }, close };
  },
};
