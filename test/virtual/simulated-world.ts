/** What each simulated world has: its place on the disk, its time, its cluster, and what happened. */
import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../../src/config/config.ts';
import type { JobId } from '../../src/job.ts';
import { memoryDirectory } from '../support/temp-directory.ts';
import { type AgentPlace, SimulatedAgent } from './agent.ts';
import { Chance } from './chance.ts';
import { type Lengths, lengthsOf } from './collections.ts';
import { SimulatedDisk } from './disk.ts';
import { Machine } from './machine.ts';
import { SimulatedReceiver } from './receiver.ts';
import { isReadable } from './safety.ts';
import { SimulatedService } from './service.ts';
import { SimulatedProcess, SimulatedTime } from './time.ts';

/** Parts of passwords, session codes and the addresses of receivers. */
const SECRETS = /hunter-secret|-of-the-simulation|the-secret-path/;
/** Lines of what happened that a failure shows. */
const MAX_SHOWN = 80;
/** So late after a standstill, the scheduler has gone round. */
const MAX_TURN_MS = 60_000;

export abstract class SimulatedWorld {
  readonly directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-virtual-'));
  readonly mirrors = path.join(this.directory, 'mirror');
  readonly seed: number;
  readonly chance: Chance;
  readonly machine: Machine;
  readonly time: SimulatedTime;
  readonly disk: SimulatedDisk;
  readonly service: SimulatedService;
  readonly receiver = new SimulatedReceiver();
  /** What happens to the cluster at times of its own. */
  readonly cluster = new SimulatedProcess();
  /** What was done, and what came of it. */
  readonly history: string[] = [];
  #digest = 0;

  /** `name`: of its chance. `sleep` lets the time of a flush pass. */
  constructor(seed: number, name: string, sleep: (ms: number) => Promise<void>) {
    this.seed = seed;
    this.chance = new Chance(seed, name);
    this.time = new SimulatedTime(() => this.machine.settle());
    this.machine = new Machine(() => this.time.passedMs);
    this.disk = new SimulatedDisk(this.directory, this.mirrors, sleep);
    this.service = new SimulatedService(new Chance(seed, 'service'), this.time);
    this.time.onEvent = () => this.checkConduct();
  }

  readonly jobIds = (): JobId[] => [...this.service.jobs.keys()];

  /** Lets time pass; what no agent may do is looked for. */
  async pass(ms: number): Promise<void> {
    await this.time.pass(ms);
    this.check();
  }

  abstract check(): void;

  /** Called after each event. */
  protected abstract checkConduct(): void;

  /** Starts a process of the agent on what is there. */
  protected agentOf(name: string, config: Config, how: Partial<AgentPlace>): SimulatedAgent {
    const { directory, time, service, receiver, disk } = this;
    return new SimulatedAgent(config, {
      ...{ directory, time, service, receiver, chance: new Chance(this.seed, `${name} ${time.passedMs}`) },
      note: (line) => this.note(line),
      log: (text) => this.log(text),
      onStopped: () => {},
      aside: (work) => disk.aside(work),
      ...how,
    });
  }

  /** How much an agent remembers; how much the world does is nothing of it. */
  protected memoryOf(agent: SimulatedAgent, ...more: readonly object[]): Lengths {
    const { time, service, receiver, disk, chance } = this;
    return lengthsOf(agent, [time, service, receiver, disk, chance, agent.process, agent.line ?? {}, ...more]);
  }

  /** A number that is the same if all of the run was the same. */
  get digest(): number {
    return this.#digest;
  }

  /** What stands in a log; no secret does, and each value is readable. */
  log(text: string): void {
    if (SECRETS.test(text)) this.service.offences.push(`a secret is logged: ${text}`);
    if (!isReadable(text)) this.service.offences.push(`the log shows no value: ${text}`);
  }

  /** Writes down what happens, with the time. */
  note(line: string): void {
    this.log(line);
    // Its place has another name in each run.
    const text = `${(this.time.passedMs / 1000).toFixed(3)} s ${line.replaceAll(this.directory, '')}`;
    for (const character of text) this.#digest = (Math.imul(this.#digest, 31) + (character.codePointAt(0) ?? 0)) | 0;
    if (line.endsWith(' ok')) return;
    this.history.push(text);
    if (this.history.length > 20 * MAX_SHOWN) this.history.splice(0, 10 * MAX_SHOWN);
  }

  /** What happened last; the calls that succeeded are left out. */
  shown(): string {
    return this.history.slice(-MAX_SHOWN).join('\n');
  }

  /** After a delay, something happens on the cluster. */
  readonly later = (delayMs: number, work: () => void): void => {
    this.time.clockOf(this.cluster).timer(delayMs, work);
  };

  /** @throws Error if a timer, or what an agent did, is not as it must be */
  protected requireNoOffence(): void {
    const [stray] = this.machine.strayTimers;
    if (stray !== undefined) throw new Error(`a timer is not of the injected clock: ${stray}`);
    const [offence] = this.service.offences;
    if (offence !== undefined) throw new Error(`an agent did what it must not do: ${offence}`);
  }

  /** @throws Error if an agent counts as unhealthy, unless it stood still just now */
  protected requireHealthy({ process, health }: SimulatedAgent): void {
    if (process.stoppedUntil > this.time.passedMs - MAX_TURN_MS) return;
    const unhealthy = health.unhealthy();
    if (unhealthy !== undefined) throw new Error(unhealthy);
  }

  /** Ends what runs in it. */
  protected abstract killAll(): void;

  end(): void {
    this.disk.isDead = false;
    this.killAll();
    this.disk.close();
    this.machine.close();
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Runs `work` in a world, which ends with it. @throws Error with what happened last, and with `again` */
export async function inWorld<World extends SimulatedWorld, T>(
  making: Promise<World>,
  work: (world: World) => Promise<T>,
  again = '',
): Promise<T> {
  const world = await making;
  try {
    return await work(world);
  } catch (error) {
    throw new Error(`${(error as Error).stack}\n${again}${world.shown()}`, { cause: error });
  } finally {
    world.end();
  }
}

/** Makes a world by `begin`; one that cannot begin is ended. */
export async function begun<World extends SimulatedWorld>(world: World, begin: (world: World) => unknown) {
  try {
    await begin(world);
    return world;
  } catch (error) {
    world.end();
    throw error;
  }
}
