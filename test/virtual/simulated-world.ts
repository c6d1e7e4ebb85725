/** What each simulated world has: its place on the disk, its time, its cluster, and what happened. */
import fs from 'node:fs';
import path from 'node:path';
import { memoryDirectory } from '../support/temp-directory.ts';
import { Chance } from './chance.ts';
import { SimulatedDisk } from './disk.ts';
import { Machine } from './machine.ts';
import { SimulatedProcess, SimulatedTime } from './time.ts';

/** Lines of what happened that a failure shows. */
const MAX_SHOWN = 80;

export abstract class SimulatedWorld {
  readonly directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-virtual-'));
  readonly mirrors = path.join(this.directory, 'mirror');
  readonly chance: Chance;
  readonly machine: Machine;
  readonly time: SimulatedTime;
  readonly disk: SimulatedDisk;
  /** What happens to the cluster at times of its own. */
  readonly cluster = new SimulatedProcess();
  /** What was done, and what came of it. */
  readonly history: string[] = [];
  #digest = 0;

  /** `name`: of its chance. `sleep` lets the time of a flush pass. */
  constructor(seed: number, name: string, sleep: (ms: number) => Promise<void>) {
    this.chance = new Chance(seed, name);
    this.time = new SimulatedTime(() => this.machine.settle());
    this.machine = new Machine(() => this.time.passedMs);
    this.disk = new SimulatedDisk(this.directory, this.mirrors, sleep);
  }

  /** A number that is the same if all of the run was the same. */
  get digest(): number {
    return this.#digest;
  }

  /** Writes down what happens, with the time. */
  note(line: string): void {
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
  requireNone(offence: string | undefined): void {
    const [stray] = this.machine.strayTimers;
    if (stray !== undefined) throw new Error(`a timer is not of the injected clock: ${stray}`);
    if (offence !== undefined) throw new Error(offence);
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
