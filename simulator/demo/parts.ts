/** The parts of the demo, all removed at its end: processes, a server, a directory, bars. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import type { NotifyEvent } from '../../src/notification.ts';
import { packageFile } from '../../src/system/package-file.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import { killAll, TaskProcess } from '../cluster/task-process.ts';
import { configurationFor, type Protocol, secretFile, writeSecrets } from '../description.ts';
import type { ReleaseName } from '../rest/releases.ts';
import { Sandbox } from '../sandbox.ts';
import { demoJob, demoNames } from './demo-job.ts';
import { Screen } from './screen.ts';

/** Files may appear while the directory is removed: a process that was just killed takes a moment to end. */
export const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };

/** What the agent and the cluster speak with each other. */
interface Spoken {
  readonly protocol: Protocol;
  /** Of REST. */
  readonly release: ReleaseName;
}

/** For the view: both agents have the same one, so that its page goes on over the kill. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export class DemoParts {
  readonly screen = new Screen(process.stdout);
  readonly directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'jobtail-demo-')));
  readonly mirrorDirectory = path.join(this.directory, 'mirror');
  readonly stateDirectory = path.join(this.directory, 'state');
  readonly #configFile = path.join(this.directory, 'config.yaml');
  readonly #eventsFile = path.join(this.directory, 'events');
  readonly #agents: TaskProcess[] = [];
  readonly #spoken: Spoken;
  #sandbox: Sandbox | undefined;

  constructor(spoken: Spoken) {
    this.#spoken = spoken;
    process.on('exit', this.#removeNow);
  }

  async startSandbox(): Promise<Sandbox> {
    const directory = path.join(this.directory, 'cluster');
    const habits = { release: this.#spoken.release };
    this.#sandbox = await Sandbox.start({ directory, habits, beforeListening: writeSecrets });
    return this.#sandbox;
  }

  /** A job that does not begin yet. */
  async createJob(sandbox: Sandbox, seconds: number): Promise<SubmittedJob> {
    const { protocol, release } = this.#spoken;
    return sandbox.submitJob({ ...demoJob({ seconds, names: demoNames(protocol, release) }), held: true });
  }

  /** Writes the configuration of the agent; its text. In a hurry, because the job lasts seconds and not days. */
  async configure(sandbox: Sandbox): Promise<string> {
    const passwordFile = path.relative(this.directory, secretFile(sandbox, 'password'));
    const { service, auth } = configurationFor(sandbox, passwordFile, this.#spoken.protocol);
    const text = stringify({
      service: { ...service, requestsPerMinute: 100_000 },
      auth,
      mirror: { directory: 'mirror' },
      state: { directory: 'state' },
      poll: { minIntervalSeconds: 0.4, maxIntervalSeconds: 0.5 },
      results: { intervalSeconds: 1 },
      notify: [{ on: ['rewritten', 'match'], match: '^done', command: ['sh', '-c', 'cat >> "$0"', this.#eventsFile] }],
      view: { listen: `127.0.0.1:${await freePort()}` },
    });
    await writeFile(this.#configFile, text);
    return text;
  }

  /** Starts `agent COMMAND ARGUMENTS`, in a group of its own: Ctrl-C reaches the demo alone, which then ends it. */
  async startAgent(command: string, ...args: readonly string[]): Promise<TaskProcess> {
    const [directory, output] = [this.directory, this.#outputFile(command)];
    const line = [process.execPath, packageFile('dist/cli/main.js'), command, ...args, '-c', this.#configFile];
    const env = { COLUMNS: String(this.screen.quotedColumns) };
    const agent = await TaskProcess.start({ command: line, directory, env, stdout: output, stderr: output });
    this.#agents.push(agent);
    return agent;
  }

  /** What the processes of a command wrote to their standard output and standard error, as it came. */
  outputOf(command: string): string {
    const file = this.#outputFile(command);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /** What the program of the notifications received, each event once. */
  get events(): NotifyEvent[] {
    const text = existsSync(this.#eventsFile) ? readFileSync(this.#eventsFile, 'utf8') : '';
    const events =
      text.trim() === ''
        ? []
        : text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as NotifyEvent);
    return [...new Map(events.map((event) => [event.id, event])).values()];
  }

  #outputFile(command: string): string {
    return path.join(this.directory, `agent-${command}.log`);
  }

  /** Ends and removes everything; may be called again. */
  async remove(): Promise<void> {
    this.screen.endProgress();
    await Promise.all([...this.#agents.map((agent) => agent.kill()), this.#sandbox?.close()]);
    await rm(this.directory, REMOVAL);
    process.off('exit', this.#removeNow);
  }

  /** For another end of the process: a second Ctrl-C, or an uncaught exception. */
  readonly #removeNow = (): void => {
    this.screen.endProgress();
    // Before their directory is removed: nothing can be waited for any more.
    killAll();
    rmSync(this.directory, REMOVAL);
  };
}
