/** What happens to a fleet, by chance: to its jobs, by commands, to its machines, to its database and the ways to it. */
import type { JobId } from '../../../src/job.ts';
import { LIVE_FILE_NAMES } from '../../../src/job.ts';
import type { SimulatedJob } from '../cluster.ts';
import { writeResult, writeSome } from '../cluster-acts.ts';
import { CODES } from '../faults.ts';
import type { FleetMachine, FleetWorld } from './world.ts';

const MINUTE_MS = 60_000;
/** The server may be away for so short a time while a backup is put back that no heartbeat meets it. */
const MIN_RESTORE_MS = 1;

const MAX_JOBS = 5;
/** A file is flushed so late after the end of its job, at most. */
const FLUSHED_WITHIN_MS = 40_000;
export const ENDS = ['Finished', 'Failed', 'Canceled'] as const;
const isRunning = ({ state }: SimulatedJob) => state === 'Running';
const isQueued = ({ state }: SimulatedJob) => state === 'Queued';

const WEIGHTS = {
  ...{ submit: 5, start: 6, write: 30, results: 8, task: 2, end: 5, restart: 1, watch: 7, unwatch: 2, sync: 2 },
  ...{ fault: 2, kill: 4, stop: 3, drain: 2, standstill: 3, suspend: 2, 'wall-clock': 2, cut: 4, 'state-full': 3 },
  ...{ 'database-away': 3, 'database-slow': 2, restore: 1, receiver: 3, nothing: 6 },
} as const;
type FleetHappening = keyof typeof WEIGHTS;

type Act = (world: FleetWorld) => unknown;

/** Something happens to one of the jobs that are meant, if there is one. */
const onJob =
  (isMeant: (job: SimulatedJob) => boolean, work: (job: SimulatedJob, world: FleetWorld) => unknown): Act =>
  (world) => {
    const job = world.chance.any([...world.service.jobs.values()].filter(isMeant));
    if (job !== undefined) work(job, world);
  };

const ACTS: Readonly<Record<FleetHappening, Act>> = {
  submit({ service }) {
    if (service.jobs.size < MAX_JOBS) service.submit(`${501 + service.jobs.size}` as JobId);
  },
  start: onJob(isQueued, (job, { time }) => job.to('Running', time.wallMs)),
  write: onJob(isRunning, (job, { chance, later }) => {
    for (let left = chance.whole(1, 12), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(50, MINUTE_MS))
      later(delayMs, () => !job.isOver && writeSome(job, chance));
  }),
  results: onJob(isRunning, (job, { chance, time, later }) => {
    for (let left = chance.whole(1, 5), delayMs = 0; left > 0; left -= 1, delayMs += chance.spread(1, 100_000))
      later(delayMs, () => !job.isOver && writeResult(job, chance, time.wallMs));
  }),
  task: onJob(isRunning, (job) => job.tasks.length < 3 && job.addTask()),
  end: onJob(isRunning, (job, { chance, time, later }) => {
    job.to(chance.among(ENDS), time.wallMs);
    if (!chance.is(0.5)) return;
    later(chance.spread(100, FLUSHED_WITHIN_MS), () => job.isOver && writeSome(job, chance));
  }),
  restart: onJob(
    ({ isOver }) => isOver,
    (job, { time }) => job.to('Running', time.wallMs),
  ),
  watch: (world) => withJob(world, (jobId) => watch(world, jobId)),
  unwatch: (world) => withJob(world, (jobId) => command(world, jobId, world.chance.is(0.3) ? 'end' : 'unwatch')),
  sync: (world) => withJob(world, (jobId) => command(world, jobId, 'sync')),
  fault({ service, chance, time }) {
    const [code, share] = [chance.among(CODES), chance.among([1, 0.3])];
    service.faults.push({ code, share, until: time.passedMs + chance.spread(1_000, 10 * MINUTE_MS) });
  },
  kill: (world) => onOne(world, (machine) => world.kill(machine)),
  stop: (world) => onOne(world, (machine) => world.stop(machine)),
  drain: (world) => onOne(world, (machine) => world.drain(machine)),
  standstill: (world) => onOne(world, (machine) => standStill(world, machine, world.chance.spread(500, 5 * MINUTE_MS))),
  /** The clock that goes by what passes stands still meanwhile, the other one does not. */
  suspend: (world) =>
    onOne(world, ({ agent, steppedAt }) => {
      const forMs = world.chance.spread(5_000, 30 * MINUTE_MS);
      const now = world.time.passedMs;
      if (agent === undefined || agent.process.stoppedUntil > now) return;
      // After a step before the next heartbeat, neither clock may show it (docs/fleet.md, "Clocks").
      if (now - steppedAt < MINUTE_MS) return;
      agent.process.stoppedUntil = now + forMs;
      agent.process.asleepMs += forMs;
    }),
  'wall-clock': (world) =>
    onOne(world, (machine) => {
      const byMs = world.chance.among([-1, 1]) * world.chance.spread(500, 24 * 60 * MINUTE_MS);
      if (machine.agent !== undefined) machine.agent.process.wallAheadMs += byMs;
      machine.steppedAt = world.time.passedMs;
    }),
  cut(world) {
    const { chance } = world;
    const machine = chance.among(world.machines);
    const what = chance.among(['out', 'back', 'both'] as const);
    if (what !== 'back') machine.way.out = false;
    if (what !== 'out') machine.way.back = false;
    world.later(chance.spread(500, 10 * MINUTE_MS), () => mendWay(world, machine));
  },
  /** Some of these agents stand still at first, and lose their jobs: they cannot forget them. */
  'state-full': (world) =>
    onOne(world, (machine) => {
      const { chance, later } = world;
      const standsMs = chance.is(0.5) ? chance.spread(20_000, 2 * MINUTE_MS) : 0;
      standStill(world, machine, standsMs);
      machine.isFull = true;
      later(standsMs + chance.spread(500, 10 * MINUTE_MS), () => {
        machine.isFull = false;
      });
    }),
  'database-away': ({ postgres, chance, later }) => {
    postgres.stop();
    later(chance.spread(500, 10 * MINUTE_MS), () => {
      postgres.isAway = false;
    });
  },
  'database-slow': ({ postgres, chance, later }) => {
    postgres.slowMs = chance.spread(50, 6_000);
    later(chance.spread(1_000, 10 * MINUTE_MS), () => {
      postgres.slowMs = 0;
    });
  },
  restore(world) {
    const { chance } = world;
    restoreLater(world, chance.spread(1_000, 20 * MINUTE_MS), chance.spread(MIN_RESTORE_MS, 2 * MINUTE_MS));
  },
  receiver({ receiver, chance, later }) {
    receiver.state = chance.among(['refuses', 'silent']);
    later(chance.spread(1_000, 10 * MINUTE_MS), () => {
      receiver.state = 'takes';
    });
  },
  nothing() {},
};

/** A backup of now is put back some time later, which takes a while. */
export function restoreLater(world: FleetWorld, delayMs: number, tookMs: number): void {
  const { postgres, later } = world;
  const backup = postgres.tables.copy();
  later(delayMs, () => {
    world.note('a backup is put back');
    world.isRestored = true;
    postgres.stop();
    postgres.tables.restore(backup);
    later(tookMs, () => {
      postgres.isAway = false;
    });
  });
}

export function mendWay({ postgres }: FleetWorld, machine: FleetMachine): void {
  machine.way.out = true;
  machine.way.back = true;
  // What was under way is lost: the connections are opened again.
  if (machine.agent !== undefined) postgres.disconnect(machine.agent.process);
}

/** Three jobs that are watched. */
export async function beginFleet(world: FleetWorld): Promise<void> {
  for (let left = 3; left > 0; left -= 1) ACTS.submit(world);
  await world.pass(20_000);
  for (const job of world.service.jobs.values()) {
    job.to('Running', world.time.wallMs);
    await watch(world, job.id);
  }
}

/** Something happens, and some time passes. */
export async function fleetStep(world: FleetWorld): Promise<void> {
  const { chance } = world;
  const happening = chance.weighted(WEIGHTS);
  world.note(`- ${happening}`);
  await ACTS[happening](world);
  await world.pass(chance.is(0.8) ? chance.spread(20, 2 * MINUTE_MS) : chance.spread(2 * MINUTE_MS, 60 * MINUTE_MS));
  for (const machine of world.machines) if (!machine.isUp && chance.is(0.5)) await world.start(machine);
}

export function watch(world: FleetWorld, jobId: JobId, results = world.chance.is(0.7)): Promise<boolean> {
  const body = { jobId, tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null, source: 'command' } as const;
  return world.command((client) => client.command({ jobId, kind: 'watch', body }));
}

export const command = (world: FleetWorld, jobId: JobId, kind: 'sync' | 'unwatch' | 'end') =>
  world.command((client) => client.command({ jobId, kind }));

export function standStill({ time }: FleetWorld, { agent }: FleetMachine, forMs: number): void {
  if (agent !== undefined) agent.process.stoppedUntil = time.passedMs + forMs;
}

function onOne(world: FleetWorld, work: (machine: FleetMachine) => unknown): Promise<unknown> | undefined {
  // One that stands still does nothing that is asked of it.
  const isAwake = ({ agent }: FleetMachine) => (agent?.process.stoppedUntil ?? 0) <= world.time.passedMs;
  const machine = world.chance.any(world.up.filter(isAwake));
  return machine === undefined ? undefined : Promise.resolve(work(machine));
}

function withJob(world: FleetWorld, work: (jobId: JobId) => Promise<unknown>): Promise<unknown> | undefined {
  const jobId = world.chance.any(world.jobIds());
  return jobId === undefined ? undefined : work(jobId);
}
