/** Many runs of worlds by their seeds, in this process, or in one for each core. */
import { execFile } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { run } from './run.ts';

/** What runs one seed. */
const RUNS = { single: async () => run, fleet: async () => (await import('./fleet/run.ts')).runFleet };

interface Seeds {
  readonly of: keyof typeof RUNS;
  readonly first: number;
  /** From one seed to the next. */
  readonly step: number;
  readonly runs: number;
  /** No run begins later. */
  readonly seconds: number;
}

interface Ran {
  readonly runs: number;
  readonly simulatedMs: number;
  /** Time of the processor. */
  readonly cpuMs: number;
  /** Of the last run, if it failed. */
  readonly failure?: string;
}

/** Runs one seed after the other until one fails. */
export async function runSeeds({ of, first, step, runs, seconds }: Seeds): Promise<Ran> {
  const runOne = await RUNS[of]();
  const end = Date.now() + seconds * 1_000;
  const cpu = process.cpuUsage();
  let [ran, simulatedMs] = [0, 0];
  const result = () => {
    const { user, system } = process.cpuUsage(cpu);
    return { runs: ran, simulatedMs, cpuMs: (user + system) / 1_000 };
  };
  for (; ran < runs && Date.now() < end; ran += 1) {
    const seed = first + ran * step;
    try {
      simulatedMs += (await runOne(seed)).simulatedMs;
    } catch (error) {
      return { ...result(), failure: `${seed}: ${(error as Error).message}` };
    }
  }
  return result();
}

/** The same in a process of its own. */
export async function runApart(seeds: Seeds, options: { signal?: AbortSignal; env?: NodeJS.ProcessEnv } = {}) {
  const [hook = '', script = ''] = ['../../scripts/typescript.mjs', 'seeds.ts'].map((name) =>
    path.join(import.meta.dirname, name),
  );
  const args = ['--import', hook, script, JSON.stringify(seeds)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26, ...options });
  return JSON.parse(stdout) as Ran;
}

/** Less is over before other processes are of use. */
const MIN_SECONDS = 20;
const HOUR_MS = 3_600_000;

/** Runs new seeds on all cores until the time is over. @throws Error what the first failing run reports */
export async function runFor(seconds: number, of: Seeds['of'] = 'single'): Promise<void> {
  const first = Date.now() % 2 ** 31;
  const step = seconds < MIN_SECONDS ? 1 : os.availableParallelism();
  const seeds = { of, first, step, runs: Number.MAX_SAFE_INTEGER, seconds };
  const others = new AbortController();
  const began = Date.now();
  const runPart = async (index: number) => {
    const part = { ...seeds, first: first + index };
    const ran = step === 1 ? await runSeeds(part) : await runApart(part, { signal: others.signal });
    if (ran.failure !== undefined) throw new Error(ran.failure);
    return ran;
  };
  try {
    const parts = await Promise.all(Array.from({ length: step }, (_, index) => runPart(index)));
    const sum = (number: (ran: Ran) => number) => parts.reduce((total, ran) => total + number(ran), 0);
    const hours = sum(({ simulatedMs }) => simulatedMs) / HOUR_MS;
    const aMinute = (ms: number) => `${((hours / ms) * 60_000).toFixed(0)} a minute`;
    const ofOne = aMinute(sum(({ cpuMs }) => cpuMs));
    const rate = `${aMinute(Date.now() - began)} by ${step} processes, ${ofOne} of one processor`;
    const runs = `${sum((ran) => ran.runs)} runs from seed ${first}`;
    process.stdout.write(`${hours.toFixed(0)} simulated hours in ${runs}: ${rate}\n`);
  } finally {
    others.abort();
  }
}
