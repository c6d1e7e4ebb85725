/**
 * The soak: `npm run soak`. An agent follows many jobs of a simulated cluster for hours, while files grow, are rewritten
 * and cut, jobs are given up and watched again, sessions end and the service fails in every way it knows. What the agent
 * uses has to stay flat, and in the end every mirror has to be its file, byte for byte.
 *
 *     --minutes N   how long; 120 if left out
 *     --jobs N      how many jobs are watched; 300 if left out
 *     --json FILE   where all samples and the figures are kept
 *
 * The table goes to the standard output. Ends with 1 if something was not flat, or a mirror differs; with 2 if the
 * arguments are wrong.
 */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from '../simulator/sandbox.ts';
import { countOf, endInOneLine, numberOf, temporaryDirectory, valuesOf } from './command-line.ts';
import { SoakAgent } from './soak/agent.ts';
import { ClusterWork } from './soak/cluster-work.ts';
import { figuresOf, type Sample, tableOf } from './soak/figures.ts';
import { Mischief } from './soak/mischief.ts';

/** Until caches, code and pools have their size. A short soak shows that it works, and has little of that. */
const WARM_SHARE = 0.25;
const SAMPLES = 240;
const CALM_SECONDS = 120;

interface Options {
  readonly minutes: number;
  readonly jobs: number;
  /** Where all samples and the figures are kept. */
  readonly json: string | undefined;
}

async function main(): Promise<void> {
  const values = valuesOf({
    minutes: { type: 'string', default: '120' },
    jobs: { type: 'string', default: '300' },
    json: { type: 'string' },
  });
  const minutes = numberOf('--minutes', values.minutes);
  const jobs = countOf('--jobs', values.jobs);
  const directory = temporaryDirectory('jobtail-soak-');
  try {
    await soakIn(directory, { minutes, jobs, json: values.json });
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

async function soakIn(directory: string, options: Options): Promise<void> {
  const sandbox = await Sandbox.start({ directory: path.join(directory, 'cluster'), port: 0 });
  try {
    const work = await ClusterWork.start(sandbox, options.jobs);
    const agent = await SoakAgent.start(directory, sandbox, work.jobs);
    try {
      await soak({ agent, work, mischief: new Mischief(sandbox, agent, work) }, options);
    } finally {
      await agent.stop();
    }
  } finally {
    await sandbox.close();
  }
}

interface Soak {
  readonly agent: SoakAgent;
  readonly work: ClusterWork;
  readonly mischief: Mischief;
}

/** Says what came of it. */
async function soak(parts: Soak, { minutes, json }: Options): Promise<void> {
  const { agent, work, mischief } = parts;
  const samples = await sampled(parts, minutes);
  mischief.end();
  const different = await agent.untilEqual(work.jobs, CALM_SECONDS);
  const figures = figuresOf(samples, WARM_SHARE);
  const done = { minutes, jobs: work.jobs.length, ...work.done, ...mischief.done };
  process.stdout.write(`${tableOf(figures, done)}\n`);
  for (const file of different) process.stdout.write(`differs: ${file}\n`);
  if (json !== undefined) {
    const date = new Date().toISOString();
    fs.writeFileSync(json, JSON.stringify({ date, node: process.version, done, figures, different, samples }));
  }
  // Within a few minutes nothing can be reported of a slope.
  const flat = minutes < 10 || figures.every(({ isFlat }) => isFlat);
  if (different.length > 0 || !flat) process.exitCode = 1;
}

async function sampled({ agent, work, mischief }: Soak, minutes: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  const durationMs = minutes * 60_000;
  const sampleEveryMs = Math.max(1_000, durationMs / SAMPLES);
  const startedAt = performance.now();
  let sampleAt = sampleEveryMs;
  for (;;) {
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs >= durationMs) return samples;
    work.advance();
    mischief.advance();
    if (elapsedMs >= sampleAt) {
      const sample = { minute: elapsedMs / 60_000, ...(await agent.sample()) };
      samples.push(sample);
      sampleAt += sampleEveryMs;
      if (samples.length % 10 === 0) process.stderr.write(`${describe(sample)}\n`);
    }
    await sleep(1_000);
  }
}

function describe({ minute, residentBytes, handles, lagSeconds, coreShare }: Sample): string {
  const memory = `${(residentBytes / 1e6).toFixed(0)} MB, ${handles} handles`;
  return `${minute.toFixed(1)} min: ${memory}, lag ${lagSeconds.toFixed(1)} s, ${(coreShare * 100).toFixed(0)} % of a core`;
}

await endInOneLine(main);
