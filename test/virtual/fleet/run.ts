/** Runs of fleets by their seeds: things happen by chance; then what is healed becomes complete, within written bounds. */
import { execFileSync } from 'node:child_process';
import type { AgentRow } from '../../../src/fleet/agents/agents.ts';
import type { JobId } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import type { SimulatedAgent } from '../agent.ts';
import { Chance } from '../chance.ts';
import type { SimulatedJob } from '../cluster.ts';
import { becomesTrue, type Lack, LIVE_BOUND_MS, lacksOfOutbox, liveFilesLacking, resultsLacking } from '../liveness.ts';
import { checkMemory } from '../safety.ts';
import { inWorld } from '../simulated-world.ts';
import { beginFleet, ENDS, fleetStep, mendWay, standStill, watch } from './happenings.ts';
import { keyOf } from './tables.ts';
import { type FleetMachine, FleetWorld } from './world.ts';

const MINUTE_MS = 60_000;
const STEPS = Number(process.env['JOBTAIL_VIRTUAL_STEPS'] ?? 50);
/** docs/fleet.md: a dead owner is replaced within that at the default `heartbeatSeconds`. */
const REPLACED_WITHIN_MS = 30_000;
/** A drained agent offers its jobs at once; the others find them by their notification. */
const HANDED_OFF_WITHIN_MS = 2_000;
/** An agent that was not ready is tried again after at most 15 minutes, one that left jobs waiting after 16. */
const OWNED_BOUND_MS = 35 * MINUTE_MS;
/** A result that failed, or that changes rarely, waits for an hour; one on which the service hung, for a day. */
const RESULTS_BOUND_MS = OWNED_BOUND_MS + 120 * MINUTE_MS;
const HUNG_BOUND_MS = OWNED_BOUND_MS + 26 * 60 * MINUTE_MS;
const READY_AGAIN_MS = 35 * MINUTE_MS;

/** All is healed at any moment of a run, early or late. */
const momentOf = (seed: number) => new Chance(seed, 'moment').whole(1, 2 * STEPS);

type Broken = readonly [what: string, begin: (world: FleetWorld, machine: FleetMachine) => unknown];

const BROKEN: readonly Broken[] = [
  ['its agent is dead', (world, machine) => world.kill(machine)],
  ['it has no way to the database', (_, { way }) => Object.assign(way, { out: false, back: false })],
  ['its agent stands still', (world, machine) => standStill(world, machine, 24 * 60 * MINUTE_MS)],
];

/** Runs `work` in a fleet with three jobs. @throws Error with the seed, the commit and what happened last */
export function inFleet<T>(seed: number, work: (world: FleetWorld) => Promise<T>): Promise<T> {
  const chance = new Chance(seed, 'settings');
  const making = FleetWorld.make(seed, {
    minIntervalSeconds: chance.among([1, 2, 5]),
    concurrency: chance.whole(1, 4),
    requestsPerMinute: chance.among([null, 20, 600]),
    timeoutSeconds: chance.among([10, 60]),
    keepGenerations: chance.among([0, 2, 5]),
  });
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const again = `JOBTAIL_LONG=1 JOBTAIL_VIRTUAL_SEED=${seed} npx vitest run test/virtual/fleet/long/fleet.test.ts`;
  const begun = async (world: FleetWorld) => {
    await beginFleet(world);
    return await work(world);
  };
  return inWorld(making, begun, `${again} (at ${commit})\n`);
}

export const runFleet = (seed: number, steps = momentOf(seed)) =>
  inFleet(seed, async (world) => {
    for (let left = steps; left > 0; left -= 1) await fleetStep(world);
    await heal(world);
    const machine = world.chance.among(world.machines);
    const [what, begin] = world.chance.among(BROKEN);
    world.note(`everything is healed, but of ${machine.name}: ${what}`);
    begin(world, machine);
    await becomesComplete(world, machine);
    await isShownAsGone(world, machine);
    await heal(world);
    await becomesComplete(world);
    await watchAll(world);
    await isTakenOver(world);
    await isTold(world);
    await isDrained(world);
    for (const each of world.up) if (each.agent) checkMemory(world, world.lengthsOf(each.agent, each));
    for (const each of world.machines) await world.stop(each);
    for (const { name, agent } of world.machines)
      if ((agent?.process.timers ?? 0) > 0) throw new Error(`a stop of ${name} leaves ${agent?.process.timers} timers`);
    const { time, service, postgres, digest } = world;
    // An hour of three agents is three hours.
    const simulatedMs = time.passedMs * world.machines.length;
    return { simulatedMs, calls: service.calls, statements: postgres.statements, digest };
  });

/** Runs new seeds until the time is over. */
export async function runFor(seconds: number): Promise<void> {
  const first = Date.now() % 2 ** 31;
  const end = Date.now() + seconds * 1_000;
  let [runs, hours] = [0, 0];
  for (; Date.now() < end; runs += 1) hours += (await runFleet(first + runs)).simulatedMs / (60 * MINUTE_MS);
  process.stdout.write(`${hours.toFixed(0)} simulated hours in ${runs} runs from seed ${first}\n`);
}

/** Everything works again. */
async function heal(world: FleetWorld): Promise<void> {
  const { service, postgres, machines, time } = world;
  world.note('everything is healed');
  service.faults = [];
  postgres.isAway = false;
  postgres.slowMs = 0;
  for (const machine of machines) {
    const { agent } = machine;
    if (agent !== undefined) time.resume(agent.process);
    mendWay(world, machine);
    machine.isFull = false;
    await world.start(machine);
  }
  // What was to happen later has happened by then.
  await world.pass(25 * MINUTE_MS);
  for (const machine of machines) mendWay(world, machine);
  await world.pass(MINUTE_MS);
}

const owned = (what: string): Lack => ({ what, boundMs: OWNED_BOUND_MS });

/** What is not as it is to be in the end. */
function lacks(world: FleetWorld, broken?: FleetMachine): Lack[] {
  const { postgres, receiver } = world;
  const orders = [...postgres.tables.of('orders').values()].filter(({ answer }) => answer === null);
  const jobs = [...postgres.tables.of('jobs').values()].filter(
    ({ state }) => state === 'watched' || state === 'ending',
  );
  const waiting = [...postgres.tables.of('jobs').values()].filter((row) => row['waiting_since'] !== null);
  const unowned = jobs.filter((row) => {
    const owner = world.ownerOf(row['job_id'] as JobId);
    return owner === undefined || owner === broken || !owner.mayWrite(row['job_id'] as JobId);
  });
  const whole = world.up.filter((machine) => machine !== broken);
  const agents = whole.flatMap(({ agent }) => agent ?? []);
  return [
    ...orders.map((one) => `the command ${one['kind']} of ${one['job_id']} is not answered`),
    ...waiting.map((row) => `${row['job_id']} waits for an owner`),
    ...unowned.map((row) => `${row['job_id']} is ${row['state']}, and no agent follows it`),
    ...whole.flatMap((machine) => [...staleRows(world, machine), ...strayRows(machine)]),
  ]
    .map(owned)
    .concat(agents.flatMap((agent) => world.disk.aside(() => lacksOfJobs(world, agent))))
    .concat(agents.flatMap((agent) => lacksOfOutbox({ agent, receiver })));
}

function lacksOfJobs({ service, mirrors }: FleetWorld, { store }: SimulatedAgent): Lack[] {
  return store.jobs.all().flatMap(({ jobId, state, error }) => {
    const job = service.job(jobId);
    if (state === 'ended') return [];
    const isHung = [...store.results.ofJob(jobId)].some(({ hangs }) => hangs > 0);
    const late = (boundMs: number) => (what: string) => ({ what: `job ${jobId}: ${what}`, boundMs });
    const [live, ofResults] = [late(OWNED_BOUND_MS + LIVE_BOUND_MS), late(isHung ? HUNG_BOUND_MS : RESULTS_BOUND_MS)];
    if (state !== (job.isOver ? 'settled' : 'watched')) return [live(`it is ${job.state}, and ${state}`)];
    if (state === 'watched' && error !== null) return [live(`it still has the error ${error.code}`)];
    // What was not proven when its job was settled is shown so, and waits for a command.
    if (state === 'settled' && unprovenIn(store, jobId).length > 0) return [];
    const here = { mirrors, store };
    return [...liveFilesLacking(here, job).map(live), ...resultsLacking(here, job).map(ofResults)];
  });
}

/** The next owner of a job would continue from the rows that the database has. */
export const staleRows = (world: FleetWorld, machine: FleetMachine) =>
  world.jobIds().flatMap((jobId) => (machine.mayWrite(jobId) ? world.staleRows(machine, jobId) : []));

/** Rows of jobs that an agent does not own. */
export const strayRows = ({ name, agent }: FleetMachine) =>
  [...(agent?.store.jobs.known() ?? [])]
    .filter((jobId) => agent?.member?.owns(jobId) !== true)
    .map((jobId) => `${name} still has rows of ${jobId}`);

const becomesComplete = (world: FleetWorld, broken?: FleetMachine) => becomesTrue(world, () => lacks(world, broken));

/** What is broken says so. */
async function isShownAsGone(world: FleetWorld, { name }: FleetMachine): Promise<void> {
  await world.pass(MINUTE_MS);
  let shown: AgentRow | undefined;
  await world.command(async (client) => {
    shown = (await client.agents.all()).find((agent) => agent.name === name);
  });
  if (shown?.state !== 'gone' || shown.jobs > 0) throw new Error(`${name} is shown as ${JSON.stringify(shown)}`);
}

/** All jobs run, and are followed. */
async function watchAll(world: FleetWorld): Promise<void> {
  await runAgain(world, [...world.service.jobs.values()]);
  await becomesComplete(world);
}

async function runAgain(world: FleetWorld, jobs: readonly SimulatedJob[]): Promise<void> {
  for (const job of jobs) {
    job.to('Running', world.time.wallMs);
    if (!(await watch(world, job.id))) throw new Error('a command fails although all is well');
  }
}

/** Each event of the life of a job is delivered at least once, whatever agent dies at what moment, and whoever receives. */
async function isTold(world: FleetWorld): Promise<void> {
  const { chance, service, receiver, time, postgres } = world;
  receiver.told.clear();
  const ended = chance.among(ENDS);
  const running = [...service.jobs.values()];
  await runAgain(
    world,
    running.filter(({ isOver }) => isOver),
  );
  const isSeen = (jobId: JobId, state: string) =>
    String(postgres.tables.of('rows').get(keyOf(jobId, 'job_information', '[]'))?.['row']).includes(state);
  await becomesTrue(world, () =>
    running.filter(({ id }) => !isSeen(id, 'Running')).map(({ id }) => owned(`job ${id} is not seen to run`)),
  );
  receiver.state = chance.among(['takes', 'refuses', 'silent']);
  for (const job of running) job.to(ended, time.wallMs);
  await world.pass(chance.spread(1, 3 * MINUTE_MS));
  const victim = chance.among(world.machines);
  world.kill(victim);
  await world.pass(chance.spread(1, 3 * MINUTE_MS));
  receiver.state = 'takes';
  await world.start(victim);
  const awaited = running.map(({ id }) => `${id} ${ended.toLowerCase()}`);
  await becomesTrue(world, () =>
    awaited.filter((event) => !receiver.told.has(event)).map((event) => owned(`nobody is told of ${event}`)),
  );
}

/** An agent dies in a fleet that is well: others own its jobs in time, and follow them. */
async function isTakenOver(world: FleetWorld): Promise<void> {
  await isReady(world);
  const victim = world.ownerOf(world.jobIds().find((jobId) => world.ownerOf(jobId) !== undefined) ?? ('' as JobId));
  if (victim === undefined) return;
  const jobs = world.jobIds().filter((jobId) => world.ownerOf(jobId) === victim);
  world.kill(victim);
  await othersFollow(world, victim, jobs, REPLACED_WITHIN_MS);
  await world.start(victim);
  await world.pass(2 * MINUTE_MS);
}

/** An agent that is drained ends with no job, and the others follow them at once. */
async function isDrained(world: FleetWorld): Promise<void> {
  await isReady(world);
  const drained = world.ownerOf(world.jobIds()[0] as JobId) ?? world.chance.among(world.machines);
  const jobs = world.jobIds().filter((jobId) => world.ownerOf(jobId) === drained);
  await world.drain(drained);
  const left = world.jobIds().filter((jobId) => world.ownerOf(jobId) === drained);
  if (left.length > 0) throw new Error(`${drained.name} is drained, and still owns ${left.join(', ')}`);
  await othersFollow(world, drained, jobs, HANDED_OFF_WITHIN_MS);
}

/** No agent is tried, or left out for a while. */
const isReady = (world: FleetWorld) =>
  becomesTrue(world, () => {
    const unready = [...world.postgres.tables.of('agents').values()].filter((agent) => agent['lacks'] !== null);
    return unready.map(({ name }) => ({ what: `${name} is not ready, although all is well`, boundMs: READY_AGAIN_MS }));
  });

function othersFollow(world: FleetWorld, former: FleetMachine, jobs: readonly JobId[], boundMs: number): Promise<void> {
  const isFollowed = (jobId: JobId) => {
    const state = world.row(jobId)?.['state'];
    if (state !== 'watched' && state !== 'ending') return true;
    return world.machines.some((machine) => machine !== former && machine.mayWrite(jobId));
  };
  const left = () => jobs.filter((jobId) => !isFollowed(jobId));
  return becomesTrue(world, () => left().map((jobId) => ({ what: `no agent follows ${jobId}`, boundMs })), 500);
}
