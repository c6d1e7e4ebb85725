/** Machines with a real agent each, on a simulated PostgreSQL and one directory of mirrors; the seed decides all. */
import fs from 'node:fs';
import path from 'node:path';
import { FleetClient } from '../../../src/fleet/commands/client.ts';
import type { JobId } from '../../../src/job.ts';
import type { Operation } from '../../../src/operations.ts';
import { configured, type Settings, type SimulatedAgent, USUAL } from '../agent.ts';
import { Chance } from '../chance.ts';
import type { Lengths } from '../collections.ts';
import { checkMirrors, checkRow } from '../safety.ts';
import { begun, SimulatedWorld } from '../simulated-world.ts';
import { SimulatedProcess } from '../time.ts';
import { type FleetProcess, SimulatedPostgres } from './postgres.ts';
import { keyOf } from './tables.ts';

export const NAMES = ['anna', 'ben', 'cleo'] as const;
const MINUTE_MS = 60_000;
/** A command waits for its connection, and for the database, each up to a time limit. */
const MAX_COMMAND_MS = MINUTE_MS;
/** A fleet's agent writes what it has, and leaves: each query has its time limit. */
const MAX_STOP_MS = MINUTE_MS;
const MAX_DRAIN_MS = 2 * MINUTE_MS;
/** Slots taken ahead, and calls without a database by the share of each agent, which begins anew. */
const SPARE_CALLS = 6;

/** The next listing finds them. */
const FOUND_BY_LISTING: readonly string[] = ['result_files', 'result_counts'];
const NOTIFICATION_TABLES = ['notified_jobs', 'read_positions', 'outbox'];

/** A row without what is written late, or differs for each machine. */
const lasting = (row: unknown) =>
  typeof row === 'string' && JSON.stringify({ ...JSON.parse(row), polled_at: null, reported_at: null });

/** One machine of the fleet. */
export class FleetMachine {
  readonly name: string;
  /** Its way to the database. */
  readonly way = { out: true, back: true };
  /** The disk of its state is full. */
  isFull = false;
  agent: SimulatedAgent | undefined;
  /** When its wall clock was set. */
  steppedAt = Number.NEGATIVE_INFINITY;
  /** The fencing tokens of the jobs that it followed last. */
  readonly followed = new Map<JobId, string | null>();

  constructor(name: string) {
    this.name = name;
  }

  get isUp(): boolean {
    return this.agent?.process.isAlive === true;
  }

  /** Whether it would write files of a job now. */
  mayWrite(jobId: JobId): boolean {
    const member = this.agent?.member;
    if (!this.isUp || member?.owns(jobId) !== true) return false;
    try {
      member.requireLease(jobId);
      return true;
    } catch {
      return false;
    }
  }
}

export class FleetWorld extends SimulatedWorld {
  readonly postgres: SimulatedPostgres;
  readonly machines = NAMES.map((name) => new FleetMachine(name));
  readonly settings: Settings;
  /** A backup was put back: offsets in it may be of generations that mirrors no longer have, until they are polled. */
  isRestored = false;
  #calls: number[] = [];

  private constructor(seed: number, changes: Partial<Settings>) {
    super(seed, 'fleet', async () => {});
    this.postgres = new SimulatedPostgres(this.time, new Chance(seed, 'database'));
    this.settings = { ...USUAL, ...changes };
    this.disk.isStateFull = () => this.#running?.isFull === true;
    this.disk.onWrite = (file) => this.#checkWriter(file);
    this.postgres.onUnknown = (what) => this.service.offences.push(what);
    this.service.onCall = ({ operation }) => this.#checkBudget(operation);
  }

  static make(seed: number, changes: Partial<Settings> = {}): Promise<FleetWorld> {
    return begun(new FleetWorld(seed, changes), async (world) => {
      for (const machine of world.machines) await world.start(machine);
    });
  }

  get up(): FleetMachine[] {
    return this.machines.filter(({ isUp }) => isUp);
  }

  /** Starts the agent of a machine on what is there. */
  async start(machine: FleetMachine): Promise<void> {
    if (machine.isUp) return;
    const { name, way } = machine;
    this.note(`${name} starts`);
    const directory = path.join(this.directory, name);
    fs.mkdirSync(directory, { recursive: true });
    const config = await configured(directory, this.settings, { name, mirrors: this.mirrors });
    const agent = this.agentOf(name, config, {
      directory,
      note: (line) => this.note(`${name}: ${line}`),
      inFleet: true,
    });
    machine.agent = agent;
    await agent.join(this.postgres.address({ process: agent.process, clock: agent.clock, way }));
    agent.member?.ended.catch((error: Error) => this.service.offences.push(`${name} ends: ${error.message}`));
  }

  /** The process ends without a last word. */
  kill(machine: FleetMachine): void {
    this.note(`${machine.name} is killed`);
    machine.agent?.kill();
    this.postgres.disconnect(machine.agent?.process);
  }

  async stop(machine: FleetMachine): Promise<void> {
    if (machine.agent === undefined || !machine.isUp) return;
    this.note(`${machine.name} is stopped`);
    await this.time.passWhile(machine.agent.stop(), MAX_STOP_MS, machine.agent.process);
  }

  /** It hands off its jobs, and ends with none if another agent can take them. */
  async drain(machine: FleetMachine): Promise<void> {
    const { agent } = machine;
    if (agent === undefined || !machine.isUp) return;
    this.note(`${machine.name} is drained`);
    await this.time.passWhile(agent.drain(), MAX_DRAIN_MS, agent.process);
    await this.stop(machine);
  }

  /** A command, which is a process of its own beside the agents. */
  async command(work: (client: FleetClient) => Promise<unknown>): Promise<boolean> {
    for (const { agent } of this.machines) agent?.line?.explain();
    const process = new SimulatedProcess();
    const member: FleetProcess = { process, clock: this.time.clockOf(process), way: { out: true, back: true } };
    const run = async () => {
      const client = await FleetClient.open(this.postgres.address(member));
      await work(client);
      await client.close();
    };
    try {
      await this.time.passWhile(run(), MAX_COMMAND_MS, process);
      return true;
    } catch (error) {
      this.note(`the command fails: ${(error as Error).message}`);
      return false;
    }
  }

  lengthsOf(agent: SimulatedAgent, { way }: FleetMachine): Lengths {
    return this.memoryOf(agent, this.postgres, way);
  }

  /** The row of a job in the database. */
  row(jobId: JobId) {
    return this.postgres.tables.of('jobs').get(keyOf(jobId));
  }

  ownerOf(jobId: JobId): FleetMachine | undefined {
    return this.machines.find(({ name }) => name === this.row(jobId)?.['owner']);
  }

  check(): void {
    this.checkConduct();
    this.#checkOutboxes();
    this.disk.aside(() => {
      for (const job of this.service.jobs.values()) {
        checkMirrors(this, job);
        const owner = this.machines.find((machine) => machine.mayWrite(job.id));
        if (this.isRestored) continue;
        for (const row of owner?.agent?.store.liveFiles.ofJob(job.id) ?? []) checkRow(this, row);
      }
    });
  }

  /** A job that nobody owns any more has no notification that waits: nobody would deliver it. */
  #checkOutboxes(): void {
    for (const { job_id: jobId, kind, row } of this.postgres.tables.of('rows').values()) {
      if (kind !== 'outbox' || (JSON.parse(String(row)) as { readonly due_at: unknown }).due_at === null) continue;
      const job = this.row(jobId as JobId);
      if (job?.['owner'] === null && job['waiting_since'] === null)
        throw new Error(`nobody owns ${jobId}, and a notification of it waits`);
    }
  }

  protected override killAll(): void {
    for (const { agent } of this.machines) agent?.kill();
  }

  /** The jobs that a machine has just begun to follow as a new owner. */
  #begun({ agent, followed }: FleetMachine): JobId[] {
    const begun: JobId[] = [];
    for (const jobId of this.service.jobs.keys()) {
      if (agent?.member?.owns(jobId) !== true) continue;
      const token = agent.member.copyMark(jobId);
      if (followed.get(jobId) !== token) begun.push(jobId);
      followed.set(jobId, token);
    }
    return begun;
  }

  /** Rows of which the database has others than the owner of their job. */
  staleRows({ name, agent }: FleetMachine, jobId: JobId, but: readonly string[] = []): string[] {
    const inDatabase = this.postgres.tables.of('rows');
    const rows = this.disk.aside(() => [...(agent?.store.portableRows.ofJob(jobId) ?? [])]);
    return rows
      .filter(({ table }) => !FOUND_BY_LISTING.includes(table) && !but.includes(table))
      .filter(({ table, key, row }) => lasting(inDatabase.get(keyOf(jobId, table, key))?.['row']) !== lasting(row))
      .map(({ table, key }) => `the database has another row of ${jobId} ${table} ${key} than ${name}`);
  }

  /** The machine whose event takes place. */
  get #running(): FleetMachine | undefined {
    return this.machines.find(({ agent }) => agent?.process === this.time.current);
  }

  /** There are never two writers: none writes what another one may write as well. */
  #checkWriter(file: string): void {
    const [jobId = ''] = path.relative(this.mirrors, file).split(path.sep);
    const writer = this.#running;
    if (writer === undefined) return;
    const others = this.machines.filter((machine) => machine !== writer && machine.mayWrite(jobId as JobId));
    const names = others.map(({ name }) => name).join(', ');
    if (names !== '') this.service.offences.push(`${writer.name} writes ${file}, and so may ${names}`);
  }

  /** All agents together keep to the budget, but for those that cannot ask the database. */
  #checkBudget(operation: Operation): void {
    const { requestsPerMinute } = this.settings;
    if (requestsPerMinute === null) return;
    const now = this.time.passedMs;
    this.#calls = this.#calls.filter((at) => at > now - MINUTE_MS);
    this.#calls.push(now);
    const allowed = requestsPerMinute * 1.05 + SPARE_CALLS * this.machines.length;
    const count = this.#calls.length;
    if (count > allowed) this.service.offences.push(`${operation}: ${count} calls in a minute, ${allowed} allowed`);
  }

  protected checkConduct(): void {
    this.requireNoOffence();
    for (const machine of this.machines) {
      const { agent, isUp } = machine;
      if (!isUp || agent === undefined) continue;
      // A new owner reads the job for notifications at once.
      const [stale] = this.#begun(machine).flatMap((jobId) => this.staleRows(machine, jobId, NOTIFICATION_TABLES));
      if (stale !== undefined)
        throw new Error(`a new owner goes on from other rows than the former one wrote: ${stale}`);
      this.requireHealthy(agent);
    }
  }
}
