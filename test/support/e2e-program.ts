/** The built program as a process of its own, as people run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, type TestContext } from 'vitest';
import { until } from './e2e-until.ts';
import { needsThat } from './needs.ts';
import { temporaryDirectory } from './temp-directory.ts';

const at = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url));
/** With a mistake in it, see scripts/mutants.mjs. */
const { JOBTAIL_PACKAGE } = process.env;
export const PROGRAM = JOBTAIL_PACKAGE ? path.join(JOBTAIL_PACKAGE, 'dist/cli/main.js') : at('dist/cli/main.js');
const LOG_EVENTS = fs.readFileSync(at('docs/dev/events.md'), 'utf8');

export interface ProgramOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The user and group it runs as; only root may name another one. */
  readonly user?: number | undefined;
  /** In place of the group with the number of the user. */
  readonly group?: number | undefined;
  /** argv before the program: another Node.js, or what it loads first. */
  readonly node?: readonly string[] | undefined;
}

/** How a process ended, and all it said. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A line of the agent's log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Processes that have not ended: none outlives this one. */
const alive = new Set<ChildProcess>();
function killAll(): void {
  for (const child of alive) child.kill('SIGKILL');
}

export class Program {
  readonly args: readonly string[];
  readonly pid: number;
  /** Resolves when it has ended and all its output was read; it never rejects. */
  readonly ended: Promise<Ended>;
  /** Set as soon as it has ended. */
  end: Ended | undefined;
  readonly #child: ChildProcess;
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];
  readonly #log: LogLine[] = [];
  /** How many pieces of the standard error the log was read from, and what is no whole line of them yet. */
  #logChunks = 0;
  #logRest = '';

  constructor(args: readonly string[], { cwd, env, user, group = user, node = [process.execPath] }: ProgramOptions) {
    if (!fs.existsSync(PROGRAM)) {
      throw new Error('dist/ is missing: these tests run the built program. `npm run setup` builds it (npm test does)');
    }
    this.args = args;
    const [command = '', ...line] = [...node, PROGRAM, ...args];
    this.#child = spawn(command, line, {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(user === undefined ? {} : { uid: user, gid: group }),
    });
    if (alive.size === 0) process.on('exit', killAll);
    alive.add(this.#child);
    const { pid, stdout, stderr } = this.#child;
    if (pid === undefined) throw new Error(`${process.execPath} cannot be started`);
    this.pid = pid;
    stdout?.on('data', (bytes: Buffer) => this.#stdout.push(bytes));
    stderr?.on('data', (bytes: Buffer) => this.#stderr.push(bytes));
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        alive.delete(this.#child);
        if (alive.size === 0) process.off('exit', killAll);
        this.end = { code, signal, stdout: this.stdout, stderr: this.stderr };
        resolve(this.end);
      });
    });
  }

  /** What it wrote so far. */
  get stdout(): string {
    return Buffer.concat(this.#stdout).toString('utf8');
  }

  get stderr(): string {
    return Buffer.concat(this.#stderr).toString('utf8');
  }

  /** The whole lines of its log so far; other lines of the standard error are passed over. */
  get log(): readonly LogLine[] {
    // Asked for again and again while it grows: each line is read once.
    const fresh = Buffer.concat(this.#stderr.slice(this.#logChunks));
    this.#logChunks = this.#stderr.length;
    const lines = `${this.#logRest}${fresh.toString('latin1')}`.split('\n');
    this.#logRest = lines.pop() ?? '';
    for (const line of lines)
      if (line.startsWith('{')) this.#log.push(JSON.parse(Buffer.from(line, 'latin1').toString('utf8')) as LogLine);
    return this.#log;
  }

  /** The lines of the log with this event of docs/dev/events.md; `fields`: what they equal, or texts that they contain. */
  logged(event: string, fields: Readonly<Record<string, unknown>> = {}): LogLine[] {
    if (!LOG_EVENTS.includes(`\n| \`${event}\` | `)) throw new Error(`docs/dev/events.md has no log event "${event}"`);
    const isMet = (actual: unknown, wanted: unknown) =>
      actual === wanted || (typeof wanted === 'string' && String(actual).includes(wanted));
    return this.log.filter(
      (line) => line.msg === event && Object.entries(fields).every(([name, wanted]) => isMet(line[name], wanted)),
    );
  }

  /** Waits for the first of these lines. */
  async logs(event: string, fields: Readonly<Record<string, unknown>> = {}): Promise<LogLine> {
    return until(`the log event "${event}" ${JSON.stringify(fields)}`, () => {
      const [first] = this.logged(event, fields);
      if (first === undefined && this.end !== undefined) throw new Error(`it ended without the log event "${event}"`);
      return first;
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<Ended> {
    this.signal('SIGKILL');
    return this.ended;
  }
}

/** The environment without what would steer the agent or colour its output. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const wanted = Object.entries(process.env).filter(
    ([name]) => !/^(AGENT_|NODE_|VITEST|TEST$|FORCE_COLOR$|CREDENTIALS_DIRECTORY$|NOTIFY_SOCKET$)/.test(name),
  );
  return { ...Object.fromEntries(wanted), NO_COLOR: '1' };
}

/** Of its job: longer than six demos at a time take to start and kill an agent. */
const DEMO_SECONDS = 15;
export const demoOptions = () => needsThat(fs.existsSync('/proc/self/cmdline'), 'the demo: it needs /proc');

/** A demo whose temporary directory is below a directory of the test. */
export function startDemo({ onTestFinished }: TestContext, seconds = DEMO_SECONDS, ...flags: readonly string[]) {
  const directory = temporaryDirectory(undefined, { onTestFinished });
  const demo = new Program(['demo', '--seconds', String(seconds), ...flags], {
    cwd: directory,
    env: { TMPDIR: directory },
  });
  /** The path of a file of the demo, as soon as it is there. */
  const found = (...name: string[]) =>
    until(name.join('/'), () => {
      if (demo.end !== undefined) throw new Error(`the demo ended: ${demo.end.stderr}`);
      const [place = ''] = fs.readdirSync(directory);
      const file = path.join(directory, place, ...name);
      return place !== '' && fs.existsSync(file) && file;
    });
  return { directory, demo, found };
}

/** Processes that were started with a path below the directory, or work there. */
export function processesIn(directory: string): string[] {
  return fs.readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const isOfIt = command.includes(directory) || fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
      return isOfIt ? [command] : [];
    } catch {
      return [];
    }
  });
}

export async function expectNothingLeft(directory: string): Promise<void> {
  expect(fs.readdirSync(directory)).toEqual([]);
  // Who was killed may take a moment to be gone.
  await until('all processes to be gone', () => processesIn(directory).length === 0);
}

/** What Node.js is given before a script that imports from src/. */
export const READS_TYPESCRIPT = ['--import', new URL('../../scripts/typescript.mjs', import.meta.url).href] as const;
