/** A fleet of processes: a PostgreSQL, a simulated cluster, agents with one directory of mirrors; the end of the test removes it. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, type TestContext } from 'vitest';
import { FLEET_NODE } from '../../bench/fleet-node.ts';
import type { JobDescription } from '../../simulator/control.ts';
import type { TemporaryDatabase } from '../../simulator/database/temporary-database.ts';
import { requestOf } from './e2e-job.ts';
import { Place, type Sections } from './e2e-place.ts';
import type { Ended, Program } from './e2e-program.ts';
import type { SandboxService } from './e2e-sandbox.ts';
import { until } from './e2e-until.ts';
import { filesOf, type WrittenFile } from './fleet-files.ts';
import { HEARTBEAT_SECONDS, startServer } from './fleet-parts.ts';
import { query, Relay } from './fleet-relay.ts';

interface FleetOptions {
  readonly jobs: number;
  /** Their names; they are not started yet. */
  readonly agents?: readonly string[];
  /** Of the configuration, of every agent. */
  readonly sections?: Sections;
}

/** An ownership of a job, by the clock of the database, in ms. */
export interface Attempt {
  readonly jobId: string;
  readonly attempt: number;
  readonly agent: string;
  readonly takenAt: number;
  /** Null while it goes on. */
  readonly endedAt: number | null;
  readonly how: string | null;
}

/** One agent: a process of its own, with its own state and its own way to the database. */
export interface FleetAgent {
  readonly name: string;
  readonly relay: Relay;
  /** As it was started last. */
  readonly program: Program;
  /** Starts `agent run` and waits until it is one of the fleet. */
  start(): Promise<unknown>;
  /** Runs a command with its configuration to its end. */
  command(...args: string[]): Promise<Ended>;
}

export class Fleet {
  readonly place: Place;
  readonly sandbox: SandboxService;
  readonly database: TemporaryDatabase;
  readonly jobs: JobDescription[] = [];
  readonly files: WrittenFile[] = [];
  readonly #agents = new Map<string, FleetAgent>();
  readonly #sections: Sections;

  private constructor(place: Place, sandbox: SandboxService, database: TemporaryDatabase, sections: Sections) {
    this.place = place;
    this.sandbox = sandbox;
    this.database = database;
    this.#sections = sections;
  }

  static async make(context: TestContext, options: FleetOptions): Promise<Fleet> {
    const { jobs, agents = ['anna', 'ben', 'cleo'], sections = {} } = options;
    const database = await startServer();
    // What is asked for first is done last: the agents are ended before their database.
    context.onTestFinished(() => database.remove());
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const fleet = new Fleet(place, sandbox, database, sections);
    for (let number = 0; number < jobs; number++) {
      const job = await sandbox.submit({ tasks: [{}] });
      fleet.jobs.push(job);
      fleet.files.push(...filesOf(job, (taskId, file) => place.mirrorOf(job.jobId, taskId, file)));
    }
    for (const name of agents) await fleet.addAgent(name);
    context.onTestFinished(async () => void (await Promise.all(fleet.agents.map(({ relay }) => relay.close()))));
    return fleet;
  }

  get agents(): FleetAgent[] {
    return [...this.#agents.values()];
  }

  agent(name: string): FleetAgent {
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new Error(`no agent is called ${name}`);
    return agent;
  }

  /** One more, which is not started. */
  async addAgent(name: string, imports: readonly string[] = []): Promise<FleetAgent> {
    const relay = await Relay.start(this.database.port);
    const directory = path.join(this.place.directory, name);
    fs.mkdirSync(directory);
    const urlFile = path.join(directory, 'url');
    fs.writeFileSync(urlFile, this.database.url.replace(`:${this.database.port}/`, `:${relay.port}/`), { mode: 0o600 });
    const configFile = path.join(directory, 'config.yaml');
    const sections: Record<string, unknown> = {
      results: { enabled: false },
      poll: { minIntervalSeconds: 0.3, maxIntervalSeconds: 1 },
      ...this.#sections,
      watch: this.jobs.map(requestOf),
      state: { directory: path.join(directory, 'state') },
      fleet: { urlFile, name, heartbeatSeconds: HEARTBEAT_SECONDS, ...(this.#sections['fleet'] as object) },
    };
    fs.writeFileSync(configFile, this.place.configText(this.sandbox, sections));
    const node = [...FLEET_NODE, ...imports.flatMap((module) => ['--import', module])];
    const started = (...args: string[]) => this.place.startAt(configFile, args, { node });
    let program: Program | undefined;
    const agent: FleetAgent = {
      ...{ name, relay },
      get program() {
        if (program === undefined) throw new Error(`${name} was never started`);
        return program;
      },
      start() {
        program = started('run');
        return program.logs('joined the fleet');
      },
      command: (...args) => started(...args).ended,
    };
    this.#agents.set(name, agent);
    return agent;
  }

  filesOf({ jobId }: JobDescription): WrittenFile[] {
    return this.files.filter(({ name }) => name.startsWith(`${jobId}/`));
  }

  /** Starts all agents, until they follow all jobs. */
  async run(): Promise<void> {
    await Promise.all(this.agents.map((agent) => agent.start()));
    await this.untilOwned();
  }

  /** The same, with some in each file before, until each agent has its share. */
  async runSpread(): Promise<void> {
    this.grow();
    await this.run();
    await this.untilSpread();
  }

  /** Until each job has an owner, and none of them is `but`. */
  async untilOwned(but: readonly string[] = []): Promise<void> {
    await until('an owner of each job', async () => {
      const owners = await this.owners();
      return (
        this.jobs.every(({ jobId }) => owners.has(jobId)) && ![...owners.values()].some((name) => but.includes(name))
      );
    });
  }

  /** By job. */
  async owners(): Promise<Map<string, string>> {
    const attempts = await this.attempts();
    return new Map(attempts.filter(({ endedAt }) => endedAt === null).map(({ jobId, agent }) => [jobId, agent]));
  }

  /** Until every job has an owner, and each agent as many as any other, but for one. */
  async untilSpread(): Promise<void> {
    await until('each agent to have its share', async () => {
      const owners = [...(await this.owners()).values()];
      const shares = this.agents.map(({ name }) => owners.filter((owner) => owner === name).length);
      return owners.length === this.jobs.length && Math.max(...shares) - Math.min(...shares) <= 1;
    });
  }

  /** By job, the oldest first. */
  attempts(): Promise<Attempt[]> {
    return this.query(
      `SELECT job_id::text AS "jobId", attempt::float8 AS attempt, agent, how,
        extract(epoch FROM taken_at)::float8 * 1000 AS "takenAt", extract(epoch FROM ended_at)::float8 * 1000 AS "endedAt"
        FROM jobtail.attempts ORDER BY job_id, attempt`,
    );
  }

  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    return query<Row>(this.database.url, text, values);
  }

  /** So many lines more in each file. */
  grow(lines = 3): void {
    for (const file of this.files) file.append(lines);
  }

  async untilEqual(): Promise<void> {
    const others = () => this.files.filter(({ isEqual }) => !isEqual).map(({ name }) => name);
    await until('the mirrors to be the files', () => others().length === 0).catch(() => expect(others()).toEqual([]));
  }

  /** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
  async expectSound(when: string): Promise<void> {
    // What is read while a mirror is cut may be bytes of before and after: what is wrong stays so.
    for (const file of this.files)
      await until('a sound mirror', () => file.wrong() === undefined).catch(() =>
        expect.fail(`${when}: ${file.wrong()}`),
      );
    const attempts = await this.attempts();
    const overlaps = attempts.filter((one, index) => {
      const next = attempts[index + 1];
      if (next === undefined || next.jobId !== one.jobId) return false;
      return next.attempt <= one.attempt || one.endedAt === null || one.endedAt > next.takenAt;
    });
    expect(overlaps, when).toEqual([]);
  }

  /** At the end: all of the above, every mirror is its file, and nothing is lost that was seen. */
  async expectEqual(): Promise<void> {
    await this.untilEqual();
    expect(this.files.flatMap((file) => file.lost())).toEqual([]);
    await this.expectSound('in the end');
  }
}

/** What the command printed. */
export async function mustSucceed(agent: FleetAgent, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await agent.command(...args);
  if (code !== 0) throw new Error(`${agent.name}: ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}
