/** The program that a task of the demo runs: `demo-task.js languages|progress --seconds S --seed N [--keep-progress]`. */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DEMO_TASKS, runDemoTask } from './demo-work.ts';

const STEP_MS = 100;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '15' },
    seed: { type: 'string', default: '1' },
    'keep-progress': { type: 'boolean', default: false },
  },
});
const task = DEMO_TASKS.find((name) => name === positionals[0]);
if (task === undefined) throw new Error(`expected one of ${DEMO_TASKS.join(', ')}`);
await runDemoTask(task, {
  directory: process.cwd(),
  stdout: (bytes) => void writeSync(1, bytes),
  stderr: (bytes) => void writeSync(2, bytes),
  pause: () => sleep(STEP_MS),
  steps: Math.max(1, Math.round((Number(values.seconds) * 1000) / STEP_MS)),
  seed: Number(values.seed),
  rewriteProgress: !values['keep-progress'],
});
