/** The built program on a pseudo-terminal of its own (util-linux `script`). */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'vitest';
import { until } from './e2e-until.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface TerminalOptions {
  /** Ends it with the test. */
  readonly context: Pick<TestContext, 'onTestFinished'>;
  readonly cwd: string;
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export class Terminal {
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #text = '';

  /** Starts `agent ARGS` on a terminal. */
  constructor(args: readonly string[], { context, cwd, columns = 100, env = {} }: TerminalOptions) {
    const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    // The echo of the terminal would mix with what the program writes.
    const command = `stty cols ${columns} rows 30 -echo; exec ${words}`;
    this.#child = spawn('script', ['-qefc', command, '/dev/null'], {
      cwd,
      env: {
        PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
        TERM: 'xterm-256color',
        LC_ALL: 'C.UTF-8',
        ...env,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdout?.on('data', (bytes: Buffer) => (this.#text += bytes.toString('utf8')));
    this.ended = new Promise((resolve) => this.#child.once('close', (code) => resolve(code)));
    context.onTestFinished(() => void this.#child.kill('SIGKILL'));
  }

  /** Everything that was written so far, escape sequences included. */
  get text(): string {
    return this.#text;
  }

  async shows(what: string | RegExp): Promise<void> {
    await until(`the terminal to show ${what}`, () =>
      typeof what === 'string' ? this.#text.includes(what) : what.test(this.#text),
    );
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }
}
