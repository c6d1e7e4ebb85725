/** The parts of the demo, all of which have to be gone at its end: processes, a server, a directory, bars. */
import path from 'node:path';
import type { SubmittedJob } from '../../sandbox/cluster/cluster.ts';
import { demoJob } from '../../sandbox/demo/demo-job.ts';
import { writeSecrets } from '../../sandbox/description.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { AgentPlace } from './agent-place.ts';
import { AgentProcesses } from './agent-processes.ts';
import { Screen } from './screen.ts';

export class DemoParts {
  readonly screen = new Screen(process.stdout);
  readonly place = new AgentPlace();
  readonly agents = new AgentProcesses(this.place.configFile);
  #sandbox: Sandbox | undefined;
  #job: SubmittedJob | undefined;

  constructor() {
    process.on('exit', this.#removeNow);
  }

  async startSandbox(): Promise<Sandbox> {
    const directory = path.join(this.place.directory, 'cluster');
    this.#sandbox = await Sandbox.start({ directory, beforeListening: writeSecrets });
    return this.#sandbox;
  }

  /** A job that does not begin yet. */
  async createJob(sandbox: Sandbox, seconds: number): Promise<SubmittedJob> {
    this.#job = await sandbox.submitJob({ ...demoJob({ seconds }), held: true });
    return this.#job;
  }

  /** Ends and removes everything; may be called again. */
  async remove(): Promise<void> {
    this.screen.endProgress();
    await Promise.all([this.agents.close(), this.#sandbox?.close()]);
    await this.place.remove();
    process.off('exit', this.#removeNow);
  }

  /** For a process that ends in another way: by a second Ctrl-C, or by an exception that nobody caught. */
  readonly #removeNow = (): void => {
    this.screen.endProgress();
    this.agents.killAll();
    // Its processes are killed before the call pauses for the first time.
    void this.#job?.kill();
    this.place.removeNow();
  };
}
