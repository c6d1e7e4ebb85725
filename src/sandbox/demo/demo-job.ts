/** The job of `agent demo`: two tasks, real processes. It needs the built program (`dist`). */
import { fileURLToPath } from 'node:url';
import type { JobSpec } from '../cluster/cluster.ts';
import { DEMO_TASKS } from './demo-work.ts';

export interface DemoJobOptions {
  /** How long the tasks write, roughly; 15 by default. */
  readonly seconds?: number;
  readonly seed?: number;
  /** Whether progress.txt is also written anew twice, not only appended to. Default true. */
  readonly rewriteProgress?: boolean;
}

/** To be given to `Sandbox.submitJob`. */
export function demoJob({ seconds = 15, seed = 1, rewriteProgress = true }: DemoJobOptions = {}): JobSpec {
  const program = fileURLToPath(new URL('./demo-task.js', import.meta.url));
  const options = [
    '--seconds',
    String(seconds),
    '--seed',
    String(seed),
    ...(rewriteProgress ? [] : ['--keep-progress']),
  ];
  return {
    tasks: DEMO_TASKS.map((task) => ({ command: [process.execPath, program, task, ...options] })),
  };
}
