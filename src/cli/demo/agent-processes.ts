/** The agent as what it is in real life: processes of the built program. All of them end with the demo. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { JobtailError } from '../../errors.ts';

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url));
/** Characters of what a process said last that are kept. */
const KEPT_OUTPUT = 64 * 1024;
const LOG_LINES = 10;

export interface AgentProcess {
  readonly pid: number;
  /** How it ended, one of the two being null; undefined while it runs. */
  readonly end: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  /** The last of what it wrote to its standard output and standard error, as it came. */
  readonly output: string;
  kill(signal: NodeJS.Signals): void;
}

export class AgentProcesses {
  readonly #configFile: string;
  /** Those that run, each with its end. */
  readonly #running = new Map<AgentProcess, Promise<void>>();
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
    const { pid } = child;
    if (pid === undefined) {
      const [cause] = await once(child, 'error');
      throw new JobtailError('local-io', `the agent cannot be started (${process.execPath})`, {
        cause,
        hint: 'the demo runs the program with the node that it is run by: see that both are there, and not too many processes',
      });
    }
    const kill = (signal: NodeJS.Signals) => void child.kill(signal);
    const started = { pid, kill, output: '', end: undefined as AgentProcess['end'] };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        started.output = (started.output + text).slice(-KEPT_OUTPUT);
      });
    }
    const ended = once(child, 'close').then(([code, signal]) => {
      started.end = { code, signal };
      this.#running.delete(started);
    });
    this.#running.set(started, ended);
    if (args[0] === 'run') this.#daemon = started;
    return started;
  }

  /** The last lines that `agent run` wrote. */
  get log(): string {
    return (this.#daemon?.output ?? '').trimEnd().split('\n').slice(-LOG_LINES).join('\n');
  }

  /** Ends whatever runs, at once; for the last moment of this program too. */
  killAll(): void {
    for (const running of this.#running.keys()) running.kill('SIGKILL');
  }

  async close(): Promise<void> {
    this.killAll();
    await Promise.all(this.#running.values());
  }
}
