/**
 * The simulated cluster as a service of its own, asked by its control interface alone. It runs in the process of the test:
 * to start the program for each test takes far longer, and what `agent sandbox` does has tests of its own.
 */
import fs from 'node:fs';
import type { JobSpec, TaskSpec } from '../../simulator/cluster/specs.ts';
import type { JobDescription } from '../../simulator/control.ts';
import { configurationFor, type Protocol, secretFile, writeSecrets } from '../../simulator/description.ts';
import type { FaultRule } from '../../simulator/faults.ts';
import type { SandboxHabits } from '../../simulator/habits.ts';
import type { SandboxCounters } from '../../simulator/place.ts';
import { Sandbox } from '../../simulator/sandbox.ts';
import type { SandboxUser } from '../../simulator/signin/sessions.ts';
import type { RecordedCall } from '../../simulator/traffic.ts';
import { until } from './e2e-until.ts';

const USERNAME = 'alice';

interface SandboxSecrets {
  readonly password: string;
  readonly token: string;
  readonly controlToken: string;
}

export class SandboxService {
  readonly baseUrl: string;
  readonly jobsUrl: string;
  /** Of its REST interface, with the path of the middleware. */
  readonly restUrl: string;
  readonly port: number;
  readonly username: string = USERNAME;
  readonly passwordFile: string;
  readonly tokenFile: string;
  readonly secrets: SandboxSecrets;
  readonly #sandbox: Sandbox;

  private constructor(sandbox: Sandbox) {
    const secret = (name: 'password' | 'token' | 'control-token') =>
      fs.readFileSync(secretFile(sandbox, name), 'utf8').trim();
    this.#sandbox = sandbox;
    this.baseUrl = sandbox.baseUrl;
    this.jobsUrl = sandbox.jobsUrl ?? '';
    this.restUrl = sandbox.restUrl;
    this.port = Number(new URL(sandbox.baseUrl).port);
    this.passwordFile = secretFile(sandbox, 'password');
    this.tokenFile = secretFile(sandbox, 'token');
    this.secrets = { password: secret('password'), token: secret('token'), controlToken: secret('control-token') };
  }

  /** Port 0 is any free one. */
  static async start(directory: string, port: number): Promise<SandboxService> {
    return new SandboxService(await Sandbox.start({ directory, port, beforeListening: writeSecrets }));
  }

  /** The sections `service` and `auth` of a configuration. */
  configuration(protocol: Protocol): ReturnType<typeof configurationFor> {
    return configurationFor(this.#sandbox, this.passwordFile, protocol);
  }

  async submit(spec: JobSpec): Promise<JobDescription> {
    return (await this.#ask('POST', 'jobs', spec)) as JobDescription;
  }

  async job(jobId: string): Promise<JobDescription> {
    return (await this.#ask('GET', `jobs/${jobId}`)) as JobDescription;
  }

  /** Starts, ends or queues a job again, or has another state reported: a word of `JOB_CHANGES` in control.ts. */
  async change(jobId: string, word: string, details: Readonly<Record<string, unknown>> = {}): Promise<JobDescription> {
    return (await this.#ask('POST', `jobs/${jobId}/${word}`, details)) as JobDescription;
  }

  /** Gives a job one more task. */
  async addTask(jobId: string, spec: TaskSpec): Promise<JobDescription> {
    return (await this.#ask('POST', `jobs/${jobId}/tasks`, spec)) as JobDescription;
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

  /** The last calls, the youngest last. */
  async calls(): Promise<RecordedCall[]> {
    return (await this.#ask('GET', 'calls')) as RecordedCall[];
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

  /** From now on nobody listens, and what was connected is cut. */
  async cut(): Promise<void> {
    await this.#sandbox.stopListening();
  }

  /** Ends it with the processes of its jobs. */
  async stop(): Promise<void> {
    await this.#sandbox.close();
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
}
