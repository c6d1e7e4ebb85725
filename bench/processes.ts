/** Processes that are measured, and what they use. Linux: it reads /proc. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a process and its children used from begin to end. */
interface RunFigures {
  readonly [figure: string]: number;
  readonly seconds: number;
  /** Processor time, user and system, of all processes. */
  readonly cpuSeconds: number;
  /** The high-water marks of all processes that ran at a time, added up. */
  readonly peakBytes: number;
}

/** Its figures, and what it wrote to its standard output. */
export interface Run {
  readonly figures: RunFigures;
  readonly stdout: string;
}

/** Clock ticks a second in /proc/PID/stat: the same on every Linux that runs Node.js. */
const TICKS_PER_SECOND = 100;
const SAMPLE_MS = 20;
const LOOK_MS = 50;
/** Beyond whatever is waited for here. */
const LONGEST_MS = 600_000;

/** Runs the command and prints what the shell's children used, to the third descriptor. */
const TIMED = '"$@"; code=$?; times >&3; exit $code';

/** With promises that they have ended. */
const running = new Map<ChildProcess, Promise<void>>();
process.on('exit', () => {
  for (const child of running.keys()) child.kill('SIGKILL');
});

/** Ends what still runs, as a measurement that failed leaves it. */
export async function endProcesses(): Promise<void> {
  while (running.size > 0) {
    for (const child of running.keys()) child.kill('SIGKILL');
    await Promise.all(running.values());
  }
}

/** Resolves when it has ended and all it wrote was read. */
function keepRunning(child: ChildProcess): Promise<void> {
  const ended = once(child, 'close').then(() => void running.delete(child));
  running.set(child, ended);
  return ended;
}

/** Runs a process to its end. For a pipeline: `run('sh', ['-c', '...'])`. @throws Error if it does not end with 0 */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const startedMs = performance.now();
  const child = spawn('sh', ['-c', TIMED, 'sh', command, ...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const closed = keepRunning(child);
  const [stdout, stderr, times] = [1, 2, 3].map((descriptor) => collect(child, descriptor));
  let peakBytes = 0;
  const sampler = setInterval(() => {
    peakBytes = Math.max(peakBytes, peakOf(child.pid ?? 0));
  }, SAMPLE_MS);
  const ended = once(child, 'exit').then(() => performance.now() - startedMs);
  await closed;
  clearInterval(sampler);
  if (child.exitCode !== 0) {
    throw new Error(`${command} ended with ${child.exitCode ?? child.signalCode}: ${stderr?.().slice(-2000)}`);
  }
  const figures = { seconds: (await ended) / 1000, cpuSeconds: secondsOf(times?.() ?? ''), peakBytes };
  return { figures, stdout: stdout?.() ?? '' };
}

/** For Node.js where it runs our side: `BENCH_NODE_ARGS="--cpu-prof --cpu-prof-dir=/tmp/profiles" npm run bench`. */
export const OUR_NODE_ARGS: readonly string[] = (process.env['BENCH_NODE_ARGS'] ?? '').split(' ').filter(Boolean);

/** Runs a process to its end, for its figures. */
export async function runProcess(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunFigures> {
  return (await run(command, args, options)).figures;
}

type Looked<Found> = Found | null | false;

/** A process that keeps running. */
export interface Started {
  readonly pid: number;
  /** All it wrote so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /**
   * What `look` finds, as soon as it is neither null nor false; `what` says what is waited for.
   * @throws Error if it ends before, with what it wrote last, or if that takes longer than anything here does
   */
  readonly until: <Found>(what: string, look: () => Looked<Found> | Promise<Looked<Found>>) => Promise<Found>;
  /** Resolves with the first match in its standard output. @throws Error as `until` */
  readonly says: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** Ends it and resolves when it has ended. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>;
}

export function startProcess(command: string, args: readonly string[], options: RunOptions = {}): Started {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw new Error(`${command} cannot be started`);
  const ended = keepRunning(child);
  const [stdout, stderr] = [collect(child, 1), collect(child, 2)];
  const until: Started['until'] = async (what, look) => {
    const failed = (how: string) => new Error(`${command} ${how} before ${what}: ${stderr().slice(-2000)}`);
    for (const deadlineMs = performance.now() + LONGEST_MS; ; await sleep(LOOK_MS)) {
      const hasEnded = !running.has(child);
      const found = await look();
      if (found !== null && found !== false) return found;
      if (hasEnded) throw failed('ended');
      if (performance.now() > deadlineMs) throw failed(`took more than ${LONGEST_MS / 1000} s`);
    }
  };
  return {
    pid: child.pid,
    stdout,
    stderr,
    until,
    says: (pattern) => until(`it said ${pattern}`, () => pattern.exec(stdout())),
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await ended;
    },
  };
}

/** What a running process and all below it have used so far. */
export interface Usage {
  /** Processor time, that of children that have ended included. */
  readonly cpuSeconds: number;
  /** Resident memory now, all processes added up; pages they share are counted in each. */
  readonly residentBytes: number;
  /** Memory that is really theirs: shared pages are divided among those who share them. */
  readonly proportionalBytes: number;
}

export function usageOf(pid: number): Usage {
  let [cpuSeconds, residentBytes, proportionalBytes] = [0, 0, 0];
  for (const one of treeOf(pid)) {
    cpuSeconds += ticksOf(one) / TICKS_PER_SECOND;
    residentBytes += kibOf(read(`/proc/${one}/status`), 'VmRSS') * 1024;
    proportionalBytes += kibOf(read(`/proc/${one}/smaps_rollup`), 'Pss') * 1024;
  }
  return { cpuSeconds, residentBytes, proportionalBytes };
}

/** Memory that a process holds alone, in bytes. */
export function privateMemoryOf(pid: number): number {
  const rollup = read(`/proc/${pid}/smaps_rollup`);
  return (kibOf(rollup, 'Private_Clean') + kibOf(rollup, 'Private_Dirty')) * 1024;
}

/** The high-water marks of a process and of all below it. */
export function peakOf(pid: number): number {
  return treeOf(pid).reduce((sum, one) => sum + kibOf(read(`/proc/${one}/status`), 'VmHWM') * 1024, 0);
}

export function hasProgram(name: string): boolean {
  return spawnSync('sh', ['-c', 'command -v -- "$1"', 'sh', name]).status === 0;
}

function treeOf(pid: number): number[] {
  const below = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return [pid, ...below.flatMap(treeOf)];
}

/** utime, stime, cutime and cstime; the name before them may hold anything. */
function ticksOf(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}

function kibOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
}

/** '' for a process that has ended meanwhile. */
function read(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function collect(child: ChildProcess, descriptor: number): () => string {
  const pieces: Buffer[] = [];
  const stream = child.stdio[descriptor];
  if (stream !== null && stream !== undefined && 'read' in stream) {
    stream.on('data', (bytes: Buffer) => pieces.push(bytes));
  }
  return () => Buffer.concat(pieces).toString();
}

/** The last line of the shell's `times` is about its children: `0m1.23s 0m0.45s`. */
function secondsOf(times: string): number {
  const children = times.trim().split('\n').at(-1) ?? '';
  const found = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
  return found.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}
