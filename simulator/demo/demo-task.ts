/** The program that a task of the demo runs: `demo-task.js solver|training|sensors SECONDS any|plain|flat SEED`. */
import '../../src/system/no-debugger.ts';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEMO_NAMES, DEMO_TASKS, runDemoTask } from './demo-work.ts';

const STEP_MS = 100;

const [name, seconds, style, seed] = process.argv.slice(2);
const task = DEMO_TASKS.find((known) => known === name);
if (task === undefined) throw new Error(`expected one of ${DEMO_TASKS.join(', ')}`);
const names = DEMO_NAMES.find((known) => known === style);
if (names === undefined) throw new Error(`expected one of ${DEMO_NAMES.join(', ')}`);
await runDemoTask(task, {
  directory: process.cwd(),
  stdout: (bytes) => void writeSync(1, bytes),
  stderr: (bytes) => void writeSync(2, bytes),
  pause: () => sleep(STEP_MS),
  steps: Math.max(1, Math.round((Number(seconds) * 1000) / STEP_MS)),
  seed: Number(seed),
  names,
});
