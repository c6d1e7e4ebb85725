/**
 * The first poll of a live file that has a long log behind it. Our side is `agent run`, already running, that is reported to
 * watch the job; the clock runs from the first call for the job to the commit of its last byte.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { writeConfig } from './agent-config.ts';
import type { LoopFigures } from './loop-delay.ts';
import type { Measurement, Place, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess, startProcess } from './processes.ts';
import { leastCode, MIB } from './result-sides.ts';
import { warmDisk } from './rounds.ts';
import { LOG_BLOCK_BYTES } from './service/answers.ts';
import { JOB_ID, TASK_ID } from './service/job.ts';
import { LOG_PATH, logBlock } from './service/log-text.ts';
import { type Service, startService } from './service/process.ts';

const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');
const LOOP_DELAY = fileURLToPath(new URL('./loop-delay.js', import.meta.url));
const LOOK_MS = 5;
const LONGEST_MS = 120_000;

const block = logBlock();

interface Log {
  readonly service: Service;
  readonly bytes: number;
}

function agent({ service, bytes }: Log, { directory }: Place): Side {
  const expected = digestOf(blocksOf(bytes));
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'agent-'));
    const at = (...names: string[]) => path.join(into, ...names);
    const sections = { results: { enabled: false }, logging: { level: 'info' } };
    const config = writeConfig(into, service, sections);
    const options = { cwd: into, env: { BENCH_LOOP_DELAY: at('loop.json') } };
    const running = startProcess(
      process.execPath,
      [...OUR_NODE_ARGS, '--import', LOOP_DELAY, AGENT, 'run', '-c', config],
      options,
    );
    try {
      await running.until('it followed', () => running.stderr().includes('agent ready'));
      process.kill(running.pid, 'SIGUSR2');
      const toldMs = Date.now();
      const before = service.liveBytes();
      await run(process.execPath, [AGENT, 'watch', '-c', config, JOB_ID, '--task', TASK_ID, '--file', 'stdout']);
      const committedMs = await whenCommitted(at('state', 'agent.db'), bytes);
      const seconds = (committedMs - firstSince(toldMs, service.readAt())) / 1000;
      await running.stop();
      const mirror = fs.readFileSync(at('mirror', JOB_ID, 'live', TASK_ID, 'stdout.log'));
      if (digestOf([mirror]) !== expected) throw new Error('the mirror is not what the log is');
      const loop = JSON.parse(fs.readFileSync(at('loop.json'), 'utf8')) as LoopFigures;
      return { ...loop, seconds, fetchedShare: (service.liveBytes() - before) / bytes };
    } finally {
      await running.stop();
      fs.rmSync(into, { recursive: true });
    }
  };
}

/** Looks into the store of the agent until the position is the length of the log. */
async function whenCommitted(file: string, bytes: number): Promise<number> {
  const db = new Database(file, { readonly: true });
  const position = db.prepare<[], number>('SELECT max(position) FROM live_files').pluck();
  const deadlineMs = Date.now() + LONGEST_MS;
  try {
    while (position.get() !== bytes) {
      if (Date.now() > deadlineMs) throw new Error(`the position is ${position.get()} instead of ${bytes}`);
      await sleep(LOOK_MS);
    }
    return Date.now();
  } finally {
    db.close();
  }
}

function firstSince(sinceMs: number, timesMs: readonly number[]): number {
  const first = timesMs.find((timeMs) => timeMs >= sinceMs);
  if (first === undefined) throw new Error('the agent did not ask for the log');
  return first;
}

function curl(service: Service, directory: string): Side {
  const entry = `<submittedTaskInfoId>${TASK_ID}</submittedTaskInfoId><fileType>StandardOutputFile</fileType><offset>0</offset>`;
  const fields = `<taskFileOffsets><TaskFileOffsetExt>${entry}</TaskFileOffsetExt></taskFileOffsets>`;
  const [command = '', ...args] = service.curl('DownloadPartsOfJobFilesFromCluster', fields);
  const file = path.join(directory, 'curl.out');
  return async () => {
    const figures = await runProcess(command, [...args, '-o', file]);
    fs.rmSync(file);
    return figures;
  };
}

const blocksOf = (bytes: number) => Array.from({ length: bytes / LOG_BLOCK_BYTES }, () => block);

function digestOf(pieces: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

export const firstPoll: Measurement = {
  name: 'first-poll',
  needs: ['curl'],
  goals: [
    {
      kind: 'ratio',
      what: 'a first poll with 256 MiB of UTF-8 log behind it, mirrored exact, against bare `curl -o`',
      ...{ figure: 'seconds', ours: 'agent', peer: 'curl', atMost: 4 },
    },
    {
      kind: 'ratio',
      what: 'the same, against the least code that makes a result of the raw log',
      ...{ figure: 'seconds', ours: 'agent', peer: 'least', atMost: 1.5 },
    },
    {
      kind: 'limit',
      what: 'longest block of the event loop in it',
      ...{ figure: 'longestBlockMs', ours: 'agent', atMost: 50 },
    },
    {
      kind: 'limit',
      what: 'bytes of the bodies that the server sent for it, base64 included, by those of the file',
      ...{ figure: 'fetchedShare', ours: 'agent', atMost: 1.5 },
    },
  ],
  prepare: async (place) => {
    const { quick, directory } = place;
    const bytes = quick ? 8 * MIB : 256 * MIB;
    const service = await startService({ logBytes: bytes, listed: [LOG_PATH] }, directory);
    const raw = { url: service.url, names: [LOG_PATH], callsAtATime: 1 };
    const sha256 = digestOf(blocksOf(bytes));
    const sides = {
      agent: agent({ service, bytes }, place),
      least: leastCode(raw, { bytes, sha256 }, place),
      curl: curl(service, directory),
    };
    return { sides, before: () => warmDisk(directory, 4 * bytes), close: () => service.stop() };
  },
};
