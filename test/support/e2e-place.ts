/** One agent with its directories, its configuration and its cluster; everything is ended and removed with the test. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestContext } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import { printableJson } from '../../src/printable.ts';
import { type Ended, PROGRAM, Program, type ProgramOptions } from './e2e-program.ts';
import { SandboxService } from './e2e-sandbox.ts';
import { until } from './e2e-until.ts';
import { SILENT } from './errors.ts';

/** Sections of the configuration file, to be laid over the defaults. */
export type Sections = Readonly<Record<string, unknown>>;

/** What `status --json` prints; test/cli/json-page.test.ts checks its keys. */
export type Status = ReturnType<typeof reportOf>;

/** The user and the group without rights, by the custom of most systems. */
export const NOBODY = 65_534;

export class Place {
  /** Absolute; everything of the test is below it. */
  readonly directory: string;
  readonly configFile: string;
  readonly mirror: string;
  readonly state: string;
  readonly #programs: Program[] = [];
  readonly #sandboxes: SandboxService[] = [];
  #user: number | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.configFile = path.join(directory, 'config.yaml');
    this.mirror = path.join(directory, 'mirror');
    this.state = path.join(directory, 'state');
  }

  /** A place that is cleared when the test of `context` is over; if the test failed, what was said is shown. */
  static make({ onTestFinished, onTestFailed }: Pick<TestContext, 'onTestFinished' | 'onTestFailed'>): Place {
    const place = new Place(fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-e2e-')));
    onTestFailed(() => place.#show());
    onTestFinished(() => place.#clear());
    return place;
  }

  /** From now on the agent runs without the rights of root; skips the test where no other user can read the program. */
  giveUpRights({ skip }: Pick<TestContext, 'skip'>): void {
    if (process.getuid?.() !== 0) return;
    const { status } = spawnSync('test', ['-r', PROGRAM], { uid: NOBODY, gid: NOBODY });
    if (status !== 0) skip('another user cannot run the program: the checkout is not readable for others');
    this.#user = NOBODY;
    fs.chownSync(this.directory, NOBODY, NOBODY);
  }

  async startSandbox(port = 0): Promise<SandboxService> {
    const sandbox = await SandboxService.start(path.join(this.directory, 'cluster'), port);
    this.#sandboxes.push(sandbox);
    return sandbox;
  }

  /** Writes the configuration for a sandbox, quick where the defaults are patient; JSON is YAML. */
  configure(service: ConfiguredService, sections: Sections = {}): void {
    this.writeConfig(this.configText(service, sections));
  }

  configText({ baseUrl, username, passwordFile }: ConfiguredService, sections: Sections): string {
    const defaults: Record<string, Sections> = {
      service: {
        protocol: 'soap',
        fileTransferUrl: `${baseUrl}/FileTransferWs`,
        namespace: 'http://sandbox.example.org/',
        baseUrl,
        requestsPerMinute: 100_000,
      },
      auth: { method: 'password', username, passwordFile },
      mirror: { directory: this.mirror },
      state: { directory: this.state },
      poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
      results: { intervalSeconds: 1 },
      logging: { level: 'debug' },
    };
    const config = Object.fromEntries(
      [...new Set([...Object.keys(defaults), ...Object.keys(sections)])].map((name) => {
        const section = sections[name];
        return [
          name,
          Array.isArray(section) || typeof section === 'number'
            ? section
            : { ...defaults[name], ...(section as Sections | undefined) },
        ];
      }),
    );
    return JSON.stringify(config, null, 2);
  }

  /** Replaces the configuration file in one step, as an editor does. */
  writeConfig(text: string): void {
    const fresh = `${this.configFile}.new`;
    fs.writeFileSync(fresh, text);
    fs.renameSync(fresh, this.configFile);
  }

  /** Starts a command with this place's configuration. */
  start(args: readonly string[]): Program {
    return this.startAt(this.configFile, args);
  }

  /** Starts a command with a configuration that is elsewhere, or as another user. */
  startAt(configFile: string, [command = '', ...rest]: readonly string[], options: Partial<ProgramOptions> = {}) {
    return this.#start([command, '--config', configFile, ...rest], options);
  }

  /** Runs `verify` until it finds every byte of the job here: results come beside the live files. */
  async verified(jobId: string): Promise<void> {
    let last = '';
    await until(`verify ${jobId} to end with 0`, async () => {
      const { code, stdout, stderr } = await this.agent('verify', jobId);
      last = stdout + stderr;
      return code === 0;
    }).catch((error: unknown) => {
      throw new Error(last, { cause: error });
    });
  }

  /** Runs a command with this place's configuration to its end. */
  agent(...args: string[]): Promise<Ended> {
    return this.start(args).ended;
  }

  /** Starts it as root, whoever the agent belongs to (`giveUpRights`). */
  startAsRoot(args: readonly string[]): Program {
    return this.startAt(this.configFile, args, { user: undefined });
  }

  agentAsRoot(...args: string[]): Promise<Ended> {
    return this.startAsRoot(args).ended;
  }

  /** Runs a program line as it is, without `-c`. */
  plain(args: readonly string[], env: ProgramOptions['env'] = {}): Promise<Ended> {
    return this.#start(args, { env }).ended;
  }

  /** Starts `agent run` and waits until it follows. */
  async run(): Promise<Program> {
    const program = this.start(['run']);
    await program.logs('agent ready');
    return program;
  }

  /** What `agent status --json` prints, of one job or of all, read in this process, which is faster. */
  async status(jobId?: string): Promise<Status> {
    const config = await loadConfig(this.configFile);
    const store = openSharedStore(config);
    try {
      return JSON.parse(
        printableJson(reportOf(config, store, jobId === undefined ? undefined : [jobId as JobId]), 2),
      ) as Status;
    } finally {
      store.close();
    }
  }

  /** What `agent watch` does while no agent runs, done in this process for the same reason; tests of the command start it. */
  async watch(jobId: string, tasks: readonly string[] = []): Promise<void> {
    const config = await loadConfig(this.configFile);
    const { store, close } = openOwnStore(config, SILENT);
    const order = { jobId: jobId as JobId, tasks: tasks as TaskId[], files: LIVE_FILE_NAMES, settleAfterMs: null };
    store.jobs.watch({ ...order, results: config.results.enabled, source: 'command' }, Date.now());
    close();
  }

  /** The commands that were started so far. */
  get programs(): readonly Program[] {
    return this.#programs;
  }

  mirrorOf(jobId: string, taskId: string, file: string): string {
    return path.join(this.mirror, jobId, 'live', taskId, `${file}.log`);
  }

  /** Waits until a mirror equals the file of the cluster. */
  async mirrored(job: JobDescription, file: keyof JobDescription['tasks'][number]['files']): Promise<void> {
    for (const { taskId, files } of job.tasks) {
      const mirror = this.mirrorOf(job.jobId, taskId, file);
      await until(`the mirror of ${file} of task ${taskId} of job ${job.jobId}`, () =>
        readIfThere(mirror)?.equals(readIfThere(files[file]) ?? Buffer.alloc(0)),
      );
    }
  }

  #start(args: readonly string[], options: Partial<ProgramOptions>): Program {
    const program = new Program(args, { cwd: this.directory, user: this.#user, ...options });
    this.#programs.push(program);
    return program;
  }

  #show(): void {
    for (const { args, stdout, stderr } of this.#programs) {
      const tail = `${stdout}${stderr}`.split('\n').slice(-60).join('\n');
      process.stderr.write(`--- agent ${args.join(' ')}\n${tail}\n`);
    }
  }

  async #clear(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.kill()));
    await Promise.all(this.#sandboxes.map((sandbox) => sandbox.stop()));
    // What an agent that was killed kept in memory, the next one would remove.
    new PrivateDirectory({ stateDirectory: this.state, environment: process.env }).clearLeftovers();
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

/** What a configuration has to know of the service. */
type ConfiguredService = Pick<SandboxService, 'baseUrl' | 'username' | 'passwordFile'>;

/** The bytes of a file; undefined if there is none. */
export function readIfThere(file: string): Buffer | undefined {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
