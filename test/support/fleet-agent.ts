/** One agent of a fleet: a process of its own, with its own state and its own way to the database. */
import fs from 'node:fs';
import path from 'node:path';
import { FLEET_NODE } from '../../bench/fleet-node.ts';
import type { Place } from './e2e-place.ts';
import type { Ended, Program } from './e2e-program.ts';
import { until } from './e2e-until.ts';
import type { Relay } from './fleet-relay.ts';

interface FleetAgentOptions {
  readonly name: string;
  readonly place: Place;
  readonly configFile: string;
  readonly relay: Relay;
  /** Modules that Node.js loads first. */
  readonly imports?: readonly string[];
}

export class FleetAgent {
  readonly name: string;
  readonly relay: Relay;
  readonly configFile: string;
  readonly #place: Place;
  readonly #node: readonly string[];
  /** Its lives, the youngest last. */
  readonly #programs: Program[] = [];

  constructor({ name, place, configFile, relay, imports = [] }: FleetAgentOptions) {
    this.name = name;
    this.relay = relay;
    this.configFile = configFile;
    this.#place = place;
    this.#node = [...FLEET_NODE, ...imports.flatMap((module) => ['--import', module])];
  }

  get program(): Program {
    const program = this.#programs.at(-1);
    if (program === undefined) throw new Error(`${this.name} was never started`);
    return program;
  }

  /** Starts `agent run` and waits until it is one of the fleet. */
  async start(): Promise<void> {
    this.#programs.push(this.#place.startAt(this.configFile, ['run'], { node: this.#node }));
    await this.program.logs('joined the fleet');
  }

  async kill(): Promise<void> {
    await this.program.kill();
  }

  /** Returns when the kernel has stopped it. */
  async pause(): Promise<void> {
    this.program.signal('SIGSTOP');
    await until(`${this.name} to be stopped`, () => isStopped(this.program.pid));
  }

  resume(): void {
    this.program.signal('SIGCONT');
  }

  /** Runs a command with its configuration to its end. */
  command(...args: string[]): Promise<Ended> {
    return this.#place.startAt(this.configFile, args, { node: this.#node }).ended;
  }

  /** What `status --json` prints. */
  async status(): Promise<FleetStatus> {
    const { code, stdout, stderr } = await this.command('status', '--json');
    if (code !== 0) throw new Error(`status ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as FleetStatus;
  }
}

/** The parts of it that tests of the fleet look at. */
interface FleetStatus {
  readonly agents: readonly { readonly name: string; readonly state: string; readonly jobs: number }[];
  readonly jobs: readonly { readonly jobId: string; readonly owner: string | null }[];
}

/** What stands behind the name of the program. */
function isStopped(pid: number): boolean {
  const stat = fs.readFileSync(path.join('/proc', String(pid), 'stat'), 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
}
