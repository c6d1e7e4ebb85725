/** The job of `agent demo`: three tasks, real processes. It needs the built program (`dist`). */
import type { ReleaseName } from '../../src/remote/rest/releases.ts';
import { packageFile } from '../../src/system/package-file.ts';
import type { JobSpec } from '../cluster/specs.ts';
import type { Protocol } from '../description.ts';
import { releaseOf } from '../rest/releases.ts';
import { DEMO_TASKS, type DemoNames } from './demo-work.ts';

interface DemoJobOptions {
  readonly seconds?: number;
  readonly names?: DemoNames;
  /** Other numbers, other bytes. */
  readonly seed?: number;
}

/** To be given to `Sandbox.submitJob`; its tasks write for about so many seconds. */
export function demoJob({ seconds = 15, names = 'any', seed = 1 }: DemoJobOptions = {}): JobSpec {
  const program = packageFile('dist/simulator/demo/demo-task.js');
  const reported = [String(seconds), names, String(seed)];
  const tasks = DEMO_TASKS.map((name) => ({ name, command: [process.execPath, program, name, ...reported] }));
  return { name: 'demo', tasks };
}

/** Names that the service hands out: over REST not any, and some releases lose directories (docs/dev/rest.md 3.4). */
export function demoNames(protocol: Protocol, release: ReleaseName): DemoNames {
  if (protocol === 'soap') return 'any';
  return releaseOf(release).names === 'whole' ? 'plain' : 'flat';
}
