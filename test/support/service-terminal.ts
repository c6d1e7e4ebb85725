/** The built program on a pseudo-terminal of its own (util-linux `script`), whose screen a terminal emulator keeps. */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import xterm from '@xterm/headless';
import type { TestContext } from 'vitest';
import { PROGRAM } from './e2e-program.ts';
import { until } from './e2e-until.ts';

interface TerminalOptions {
  /** Ends it with the test. */
  readonly context: Pick<TestContext, 'onTestFinished'>;
  readonly cwd: string;
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export class Terminal {
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #emulator: xterm.Terminal;
  #text = '';

  /** Starts `agent ARGS` on a terminal. */
  constructor(args: readonly string[], { context, cwd, columns = 100, rows = 30, env = {} }: TerminalOptions) {
    const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    // The echo of the terminal would mix with what the program writes.
    const command = `stty cols ${columns} rows ${rows} -echo; exec ${words}`;
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
    this.#emulator = new xterm.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true });
    const decoder = new TextDecoder();
    this.#child.stdout?.on('data', (bytes: Buffer) => {
      const text = decoder.decode(bytes, { stream: true });
      this.#text += text;
      this.#emulator.write(text);
    });
    // The emulator takes what is written a moment later.
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code) => this.#emulator.write('', () => resolve(code)));
    });
    context.onTestFinished(() => void this.#child.kill('SIGKILL'));
  }

  /** What a person sees now, and can scroll back to: lines without colours, wrapped ones whole. */
  get screen(): string {
    const buffer = this.#emulator.buffer.active;
    let text = '';
    for (let at = 0; at < buffer.length; at++) {
      const line = buffer.getLine(at);
      text += `${at > 0 && line?.isWrapped !== true ? '\n' : ''}${line?.translateToString(true) ?? ''}`;
    }
    return text.trimEnd();
  }

  /** Everything that was written so far, escape sequences included. */
  get text(): string {
    return this.#text;
  }

  /** Waits until `what` stands on the screen. */
  async shows(what: string | RegExp): Promise<void> {
    await until(`the terminal to show ${what}, and not only ${JSON.stringify(this.screen.slice(-500))}`, () => {
      const { screen } = this;
      return typeof what === 'string' ? screen.includes(what) : what.test(screen);
    });
  }

  /** Waits until `what` was written, whatever became of it on the screen. */
  async writes(what: string): Promise<void> {
    await until(`the terminal to be written ${JSON.stringify(what)}`, () => this.#text.includes(what));
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }
}
