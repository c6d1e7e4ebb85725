/** The simulated cluster in a process of its own, and its control interface. */
import fs from 'node:fs';
import path from 'node:path';
import type { JobSpec } from '../../src/sandbox/cluster/cluster.ts';
import type { JobDescription } from '../../src/sandbox/control.ts';
import type { FaultRule } from '../../src/sandbox/faults.ts';
import type { SandboxHabits } from '../../src/sandbox/habits.ts';
import type { SandboxUser } from '../../src/sandbox/signin/sessions.ts';
import type { SandboxCounters } from '../../src/sandbox/traffic.ts';
import { Program } from './e2e-program.ts';
import { until } from './e2e-until.ts';

const USERNAME = 'alice';

export interface SandboxSecrets {
  readonly password: string;
  readonly token: string;
  readonly controlToken: string;
}

export class SandboxProcess {
  readonly program: Program;
  readonly baseUrl: string;
  readonly port: number;
  readonly username: string = USERNAME;
  readonly passwordFile: string;
  readonly tokenFile: string;
  readonly secrets: SandboxSecrets;
  /** Process groups of its jobs, in case it is killed before it can end them itself. */
  readonly #groups = new Set<number>();

  private constructor(program: Program, baseUrl: string, directory: string) {
    const file = (name: string) => path.join(directory, 'secrets', name);
    const secret = (name: string) => fs.readFileSync(file(name), 'utf8').trim();
    this.program = program;
    this.baseUrl = baseUrl;
    this.port = Number(new URL(baseUrl).port);
    this.passwordFile = file('password');
    this.tokenFile = file('token');
    this.secrets = { password: secret('password'), token: secret('token'), controlToken: secret('control-token') };
  }

  /** Starts `agent sandbox`; port 0 is any free one. */
  static async start(directory: string, port: number): Promise<SandboxProcess> {
    fs.mkdirSync(directory, { recursive: true });
    const program = new Program(['sandbox', '--directory', directory, '--port', String(port)], { cwd: directory });
    const baseUrl = await until('the sandbox to listen', () => {
      if (program.end !== undefined) throw new Error(`the sandbox ended: ${program.end.stderr}`);
      return /^ +baseUrl: "(.*)"$/m.exec(program.stdout)?.[1];
    });
    return new SandboxProcess(program, baseUrl, directory);
  }

  async submit(spec: JobSpec): Promise<JobDescription> {
    return this.#noted((await this.#ask('POST', 'jobs', spec)) as JobDescription);
  }

  async job(jobId: string): Promise<JobDescription> {
    return this.#noted((await this.#ask('GET', `jobs/${jobId}`)) as JobDescription);
  }

  /** Waits until all processes of a job have ended. */
  async finished(jobId: string): Promise<void> {
    await until(`the processes of job ${jobId} to end`, async () =>
      (await this.job(jobId)).tasks.every(({ state }) => state === 'ended'),
    );
  }

  async fault(rule: FaultRule): Promise<void> {
    await this.#ask('POST', 'faults', rule);
  }

  /** How often the rules applied, in the order in which they were added. */
  async faultsApplied(): Promise<number[]> {
    const rules = (await this.#ask('GET', 'faults')) as { applied: number }[];
    return rules.map(({ applied }) => applied);
  }

  async clearFaults(): Promise<void> {
    await this.#ask('DELETE', 'faults');
  }

  async setHabits(habits: Partial<SandboxHabits>): Promise<void> {
    await this.#ask('POST', 'habits', habits);
  }

  async setUser(user: Pick<SandboxUser, 'username'> & Partial<SandboxUser>): Promise<void> {
    await this.#ask('POST', 'users', user);
  }

  async expireSessions(): Promise<void> {
    await this.#ask('DELETE', 'sessions');
  }

  async counters(): Promise<SandboxCounters> {
    return (await this.#ask('GET', 'counters')) as SandboxCounters;
  }

  /** The session code of its user: signing in again hands out the same one. */
  async sessionCode(password = this.secrets.password): Promise<string> {
    const response = await fetch(`${this.baseUrl}/service/UserAndLimitationManagement/AuthenticateUserAndPassword`, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ Credentials: { Username: USERNAME, Password: password } }),
    });
    if (!response.ok) throw new Error(`the sandbox refused a sign-in of the test: ${response.status}`);
    return (await response.json()) as string;
  }

  /** Ends it in order; what is left of its jobs is killed. */
  async stop(): Promise<void> {
    this.program.signal('SIGTERM');
    const late = setTimeout(() => this.program.signal('SIGKILL'), 20_000);
    await this.program.ended;
    clearTimeout(late);
    for (const group of this.#groups) killGroup(group);
  }

  async #ask(method: string, what: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.baseUrl}/sandbox/${what}`, {
      method,
      headers: { authorization: `Bearer ${this.secrets.controlToken}` },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${what} of the sandbox: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  #noted(job: JobDescription): JobDescription {
    for (const { pid, state } of job.tasks) {
      if (pid === null) continue;
      if (state === 'running') this.#groups.add(pid);
      else this.#groups.delete(pid);
    }
    return job;
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended, as it should.
  }
}
