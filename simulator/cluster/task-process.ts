/**
 * The process of a task: real, in its own process group, its stdout and stderr being the files themselves, as a batch
 * system does it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { JobtailError } from '../../src/errors.ts';

interface TaskProcessOptions {
  /** argv; no shell. */
  readonly command: readonly string[];
  readonly directory: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Files that stdout and stderr are appended to. */
  readonly stdout: string;
  readonly stderr: string;
}

/** How a process ended: one of the two is null. */
export interface TaskExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Process groups that may still have members, for the last moment of this program. */
const groups = new Set<number>();

export class TaskProcess {
  readonly pid: number;
  /** Undefined while it runs. */
  exit: TaskExit | undefined;
  /** Resolves when the process has ended; it never rejects. */
  readonly exited: Promise<TaskExit>;

  private constructor(child: ChildProcess, pid: number) {
    this.pid = pid;
    track(pid);
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.exit = { code, signal };
        if (!signalGroup(pid, 0)) untrack(pid);
        resolve(this.exit);
      });
    });
  }

  /** Starts it. A program that cannot be started is a `local-io` error. */
  static async start({ command, directory, env, stdout, stderr }: TaskProcessOptions): Promise<TaskProcess> {
    const [program, ...argv] = command;
    if (program === undefined) throw new JobtailError('usage', 'the command of a task is empty');
    const out = openSync(stdout, 'a');
    const err = openSync(stderr, 'a');
    try {
      const child = spawn(program, argv, {
        cwd: directory,
        env: { ...process.env, ...env },
        stdio: ['ignore', out, err],
        detached: true,
      });
      const { pid } = child;
      if (pid !== undefined) return new TaskProcess(child, pid);
      const cause = await new Promise<Error>((resolve) => child.once('error', resolve));
      throw new JobtailError('local-io', `the program ${program} of a task cannot be started`, { cause });
    } finally {
      closeSync(out);
      closeSync(err);
    }
  }

  /** Sends a signal to the process and everything it started. */
  signal(signal: NodeJS.Signals): void {
    // After the exit the number belongs to the group only as long as the group has members.
    if (this.exit === undefined || groups.has(this.pid)) signalGroup(this.pid, signal);
  }

  /** Ends the process and everything it started, and waits until the process is gone. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited;
    untrack(this.pid);
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

function track(pid: number): void {
  if (groups.size === 0) process.on('exit', killAll);
  groups.add(pid);
}

function untrack(pid: number): void {
  if (groups.delete(pid) && groups.size === 0) process.off('exit', killAll);
}

/** Ends all of them at once, as at the end of this program: one that does not close its sandbox leaves none behind either. */
export function killAll(): void {
  for (const pid of groups) signalGroup(pid, 'SIGKILL');
}
