/** What a fleet may have to bear, drawn by chance; each does its harm and leaves what it takes to mend it. */
import { type Fleet, watchWords } from './fleet.ts';
import type { FleetAgent } from './fleet-agent.ts';

export interface Mischief {
  readonly name: string;
  /** So often as its share of all weights. */
  readonly weight: number;
  /** What was done, in words; undefined if it could not be done just now. */
  readonly run: (mischief: MischiefParts) => Promise<string | undefined>;
}

export interface MischiefParts {
  readonly fleet: Fleet;
  /** A whole number from 0 up to `below`. */
  readonly random: (below: number) => number;
  /** The jobs that are to be followed. */
  readonly watched: Set<string>;
  /** The commands that end a job and go on, by the job. No other command is given for it until they have ended. */
  readonly ending: Map<string, Promise<void>>;
  /** What ends each harm that goes on, by what it was done to. */
  readonly mend: Map<string, () => Promise<void> | void>;
}

const MAX_AGENTS = 5;
const MAX_JOBS = 40;

export const MISCHIEFS: readonly Mischief[] = [
  {
    name: 'kill',
    weight: 3,
    run: async ({ fleet, random, mend }) => {
      const agent = pick(runningOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      await agent.kill();
      mend.set(agent.name, () => agent.begin());
      return agent.name;
    },
  },
  {
    name: 'terminate',
    weight: 1,
    run: async ({ fleet, random, mend }) => {
      const agent = pick(runningOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      await agent.terminate();
      mend.set(agent.name, () => agent.begin());
      return agent.name;
    },
  },
  {
    name: 'pause',
    weight: 3,
    run: async ({ fleet, random, mend }) => {
      const agent = pick(runningOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      await agent.pause();
      mend.set(agent.name, () => agent.resume());
      return agent.name;
    },
  },
  {
    name: 'silence',
    weight: 2,
    run: async ({ fleet, random, mend }) => {
      const agent = pick(runningOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      agent.relay.silence();
      mend.set(agent.name, () => agent.relay.open());
      return agent.name;
    },
  },
  {
    name: 'cut',
    weight: 2,
    run: async ({ fleet, random, mend }) => {
      const agent = pick(runningOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      agent.relay.cut();
      mend.set(agent.name, () => agent.relay.open());
      return agent.name;
    },
  },
  {
    name: 'restart the database',
    weight: 1,
    run: async ({ fleet, random }) => {
      const how = random(2) === 0 ? 'kill' : 'stop';
      await fleet.database[how]();
      await fleet.database.start();
      return how;
    },
  },
  {
    name: 'new agent',
    weight: 1,
    run: async ({ fleet }) => {
      if (fleet.agents.length === MAX_AGENTS) return undefined;
      const agent = await fleet.addAgent(`agent-${fleet.agents.length + 1}`);
      agent.begin();
      return agent.name;
    },
  },
  {
    name: 'watch',
    weight: 2,
    run: async ({ fleet, random, watched, ending, mend }) => {
      const agent = pick(reachableOf(fleet, mend), random);
      if (agent === undefined) return undefined;
      const others = fleet.jobs.filter(({ jobId }) => !watched.has(jobId) && !ending.has(jobId));
      const isNew = others.length === 0 || (fleet.jobs.length < MAX_JOBS && random(2) === 0);
      const job = isNew ? await fleet.submit() : (pick(others, random) ?? (await fleet.submit()));
      const { code, stderr } = await agent.command(...watchWords(job));
      if (code === 0) watched.add(job.jobId);
      return `${job.jobId} by ${agent.name}: ${code === 0 ? 'done' : stderr}`;
    },
  },
  {
    name: 'unwatch',
    weight: 1,
    run: async ({ fleet, random, watched, ending, mend }) => {
      const agent = pick(reachableOf(fleet, mend), random);
      const jobId = pick([...watched], random);
      if (agent === undefined || jobId === undefined || watched.size < 5) return undefined;
      // Its owner may be dead: the rounds go on before it ends.
      watched.delete(jobId);
      ending.set(
        jobId,
        endJob(agent, jobId).finally(() => ending.delete(jobId)),
      );
      return `${jobId} by ${agent.name}`;
    },
  },
  {
    name: 'rewrite',
    weight: 6,
    run: async ({ fleet, random }) => {
      const file = pick(fleet.files, random);
      file?.rewrite();
      return file?.name;
    },
  },
];

/** As a person does it: a command that a later harm broke off is given once more. */
async function endJob(agent: FleetAgent, jobId: string): Promise<void> {
  for (;;) {
    const { code, stderr } = await agent.command('unwatch', jobId);
    // Its database may have been away when the order was given, or after it was.
    if (code === 0 || stderr.includes('is not watched')) return;
  }
}

/** Those that nothing was done to. */
const runningOf = (fleet: Fleet, mend: MischiefParts['mend']): FleetAgent[] =>
  fleet.agents.filter(({ name, isRunning }) => isRunning && !mend.has(name));

/** Those whose commands reach the database: the state of the process does not matter for them. */
const reachableOf = (fleet: Fleet, mend: MischiefParts['mend']): FleetAgent[] =>
  fleet.agents.filter(({ name }) => !mend.has(name));

export function pick<T>(things: readonly T[], random: (below: number) => number): T | undefined {
  return things[random(things.length)];
}

/** One of `MISCHIEFS`, by their weights. */
export function drawMischief(random: (below: number) => number): Mischief {
  let number = random(MISCHIEFS.reduce((sum, { weight }) => sum + weight, 0));
  for (const mischief of MISCHIEFS) {
    number -= mischief.weight;
    if (number < 0) return mischief;
  }
  throw new Error('the weights are wrong');
}

/** mulberry32: a whole number from 0 up to `below`. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
