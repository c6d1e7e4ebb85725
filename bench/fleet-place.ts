/** A fleet under measurement: a PostgreSQL, agents that share jobs and a directory of mirrors, a middleware. */
import fs from 'node:fs';
import path from 'node:path';
import { type DatabasePrograms, findDatabasePrograms } from '../simulator/database/programs.ts';
import { TemporaryDatabase } from '../simulator/database/temporary-database.ts';
import { packageFile } from '../src/system/package-file.ts';
import { FLEET_NODE, FLEET_PLACE } from './fleet-node.ts';
import { query } from './fleet-query.ts';
import { NotHere } from './measurement.ts';
import { SESSION } from './middleware.ts';
import { type Started, startProcess } from './processes.ts';
import { NAMESPACE } from './service/job.ts';
import type { RunningMiddleware } from './watching.ts';

export const AGENTS = ['anna', 'ben', 'cleo'] as const;
const SCHEMA = 'jobtail';

interface FleetSetting {
  readonly middleware: RunningMiddleware;
  readonly jobs: number;
  readonly intervalSeconds: number;
  readonly requestsPerMinute: number;
  readonly heartbeatSeconds: number;
}

export class FleetPlace {
  readonly database: TemporaryDatabase;
  readonly #directory: string;
  readonly #agents = new Map<string, Started>();

  private constructor(database: TemporaryDatabase, directory: string) {
    this.database = database;
    this.#directory = directory;
  }

  static async make(directory: string): Promise<FleetPlace> {
    const programs: DatabasePrograms | undefined = findDatabasePrograms([FLEET_PLACE]);
    if (programs === undefined) throw new NotHere('there is no PostgreSQL');
    fs.mkdirSync(directory, { recursive: true });
    return new FleetPlace(await TemporaryDatabase.start(programs), directory);
  }

  agent(name: string): Started {
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new Error(`${name} was not started`);
    return agent;
  }

  /** Starts the agents, which share the jobs 1, 2, ... with one task each; resolves when all jobs have owners. */
  async start(setting: FleetSetting): Promise<void> {
    for (const name of AGENTS) this.begin(name, setting);
    await this.untilOwned(setting.jobs, AGENTS);
  }

  begin(name: string, setting: FleetSetting): void {
    const file = this.#writeConfig(name, setting);
    const [program = '', ...args] = [...FLEET_NODE, packageFile('dist/cli/main.js'), 'run', '-c', file];
    this.#agents.set(name, startProcess(program, args));
  }

  /** Until so many jobs have owners, all of them among `names`, each of which has some. @throws Error if one ends before */
  async untilOwned(jobs: number, names: readonly string[]): Promise<void> {
    const areOwned = async () => {
      const owners = await this.#owners();
      const owned = [...owners.values()].reduce((sum, count) => sum + count, 0);
      return owned === jobs && owners.size === names.length && names.every((name) => owners.has(name));
    };
    await Promise.all(names.map((name) => this.agent(name).until('the jobs had owners', areOwned)));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.stop('SIGKILL')));
    await this.database.remove();
  }

  /** By agent: how many jobs it has. */
  async #owners(): Promise<Map<string, number>> {
    try {
      const rows = await query<{ agent: string; jobs: number }>(
        this.database.url,
        `SELECT agent, count(*)::int AS jobs FROM ${SCHEMA}.attempts WHERE ended_at IS NULL GROUP BY agent`,
      );
      return new Map(rows.map(({ agent, jobs }) => [agent, jobs]));
    } catch (error) {
      // 42P01: the first agent has not made it yet.
      if ((error as { code?: string }).code === '42P01') return new Map();
      throw error;
    }
  }

  #writeConfig(name: string, setting: FleetSetting): string {
    const { middleware, jobs, intervalSeconds, requestsPerMinute, heartbeatSeconds } = setting;
    const at = (file: string) => path.join(this.#directory, file);
    fs.writeFileSync(at('session'), SESSION, { mode: 0o600 });
    fs.writeFileSync(at('url'), this.database.url, { mode: 0o600 });
    const config = {
      service: {
        protocol: 'soap',
        fileTransferUrl: `${middleware.url}/FileTransferWs`,
        namespace: NAMESPACE,
        baseUrl: middleware.url,
        requestsPerMinute,
        concurrency: 8,
      },
      auth: { method: 'session-code', sessionCodeFile: at('session') },
      mirror: { directory: at('mirror') },
      state: { directory: at(`state-${name}`) },
      poll: { minIntervalSeconds: intervalSeconds, maxIntervalSeconds: intervalSeconds },
      results: { enabled: false },
      logging: { level: 'warn' },
      fleet: { name, urlFile: at('url'), heartbeatSeconds, maxJobs: jobs },
      watch: Array.from({ length: jobs }, (_, index) => ({ job: index + 1, tasks: [index + 1] })),
    };
    const file = at(`${name}.yaml`);
    fs.writeFileSync(file, JSON.stringify(config));
    return file;
  }
}
