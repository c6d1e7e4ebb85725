/** The parts of the demo, all of which have to be gone at its end: processes, a server, a directory, bars. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { SubmittedJob } from '../../sandbox/cluster/cluster.ts';
import { demoJob } from '../../sandbox/demo/demo-job.ts';
import { describeSandbox, type SandboxDescription, writeSecrets } from '../../sandbox/description.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { AgentProcesses } from './agent-processes.ts';
import { Screen } from './screen.ts';

/** Files may appear while the directory is removed: a process that was just killed takes a moment to end. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };

export class DemoParts {
  readonly screen = new Screen(process.stdout);
  readonly directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'jobtail-demo-')));
  readonly mirrorDirectory = path.join(this.directory, 'mirror');
  readonly stateDirectory = path.join(this.directory, 'state');
  readonly #configFile = path.join(this.directory, 'config.yaml');
  readonly agents = new AgentProcesses(this.#configFile);
  #sandbox: Sandbox | undefined;
  #job: SubmittedJob | undefined;

  constructor() {
    process.on('exit', this.#removeNow);
  }

  async startSandbox(): Promise<Sandbox> {
    const directory = path.join(this.directory, 'cluster');
    this.#sandbox = await Sandbox.start({ directory, beforeListening: writeSecrets });
    return this.#sandbox;
  }

  /** A job that does not begin yet. */
  async createJob(sandbox: Sandbox, seconds: number): Promise<SubmittedJob> {
    this.#job = await sandbox.submitJob({ ...demoJob({ seconds }), held: true });
    return this.#job;
  }

  /** Writes the configuration of the agent; its text. */
  async configure(sandbox: Sandbox): Promise<string> {
    const description = describeSandbox(sandbox);
    const text = configurationFor(description, path.relative(this.directory, description.passwordFile));
    await writeFile(this.#configFile, text);
    return text;
  }

  /** Ends and removes everything; may be called again. */
  async remove(): Promise<void> {
    this.screen.endProgress();
    await Promise.all([this.agents.close(), this.#sandbox?.close()]);
    await rm(this.directory, REMOVAL);
    process.off('exit', this.#removeNow);
  }

  /** For a process that ends in another way: by a second Ctrl-C, or by an exception that nobody caught. */
  readonly #removeNow = (): void => {
    this.screen.endProgress();
    this.agents.killAll();
    // Its processes are killed before the call pauses for the first time.
    void this.#job?.kill();
    rmSync(this.directory, REMOVAL);
  };
}

/** In a hurry, because the job lasts seconds and not days. */
function configurationFor(
  { fileTransferUrl, namespace, baseUrl, jobsUrl, username }: SandboxDescription,
  passwordFile: string,
) {
  return `service:
  fileTransferUrl: ${fileTransferUrl}
  namespace: ${namespace}
  baseUrl: ${baseUrl}
  jobsUrl: ${jobsUrl}
  requestsPerMinute: 100000
auth:
  username: ${username}
  passwordFile: ${passwordFile}
mirror: {directory: mirror}
state: {directory: state}
poll: {minIntervalSeconds: 0.4, maxIntervalSeconds: 0.5}
results: {intervalSeconds: 1}
`;
}
