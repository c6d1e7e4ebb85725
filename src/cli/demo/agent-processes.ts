/** The agent as what it is in real life: processes of the built program. All of them end with the demo. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { JobtailError } from '../../errors.ts';

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url));
/** Characters of what a process said last that are kept. */
const KEPT_OUTPUT = 64 * 1024;
const LOG_LINES = 10;

/** How a process ended: one of the two is null. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class AgentProcess {
  readonly pid: number;
  /** Undefined while it runs. */
  end: ProcessEnd | undefined;
  /** What it wrote to its standard output and standard error, as it came. */
  output = '';
  readonly ended: Promise<ProcessEnd>;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, pid: number) {
    this.pid = pid;
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-KEPT_OUTPUT);
      });
    }
    this.ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.end = { code, signal };
        resolve(this.end);
      });
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

export class AgentProcesses {
  readonly #configFile: string;
  readonly #processes = new Set<AgentProcess>();
  #daemon: AgentProcess | undefined;

  constructor(configFile: string) {
    this.#configFile = configFile;
  }

  /** Starts `agent ARGUMENTS -c CONFIGURATION`. */
  async start(...args: readonly string[]): Promise<AgentProcess> {
    const child = spawn(process.execPath, [PROGRAM, ...args, '-c', this.#configFile], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Of its own group, so that Ctrl-C reaches the demo alone, which then ends it.
      detached: true,
    });
    if (child.pid === undefined) {
      const cause = await new Promise<Error>((resolve) => child.once('error', resolve));
      throw new JobtailError('local-io', `the agent cannot be started (${process.execPath})`, {
        cause,
        hint: 'the demo runs the program with the node that it is run by: see that both are there, and not too many processes',
      });
    }
    const started = new AgentProcess(child, child.pid);
    this.#processes.add(started);
    if (args[0] === 'run') this.#daemon = started;
    void started.ended.then(() => this.#processes.delete(started));
    return started;
  }

  /** The last lines that `agent run` wrote. */
  get log(): string {
    return (this.#daemon?.output ?? '').trimEnd().split('\n').slice(-LOG_LINES).join('\n');
  }

  /** Ends whatever runs, at once; for the last moment of this program too. */
  killAll(): void {
    for (const running of this.#processes) running.kill('SIGKILL');
  }

  async close(): Promise<void> {
    this.killAll();
    await Promise.all([...this.#processes].map((running) => running.ended));
  }
}
