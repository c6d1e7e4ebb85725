/** The job of `agent demo`: two tasks, real processes. It needs the built program (`dist`). */
import { packageFile } from '../../system/package-file.ts';
import type { JobSpec } from '../cluster/specs.ts';
import { DEMO_TASKS } from './demo-work.ts';

/** To be given to `Sandbox.submitJob`; its tasks write for about so many seconds. */
export function demoJob({ seconds = 15 }: { readonly seconds?: number } = {}): JobSpec {
  const program = packageFile('dist/sandbox/demo/demo-task.js');
  const tasks = DEMO_TASKS.map((name) => ({ name, command: [process.execPath, program, name, String(seconds)] }));
  return { name: 'demo', tasks };
}
