/** The simulated cluster in the process of the test, which is faster; `agent sandbox` has tests of its own. */
import fs from 'node:fs';
import type { SubmittedJob } from '../../simulator/cluster/cluster.ts';
import type { JobSpec, TaskSpec } from '../../simulator/cluster/specs.ts';
import { describeJob, type JobDescription } from '../../simulator/control.ts';
import { configurationFor, type Protocol, secretFile, writeSecrets } from '../../simulator/description.ts';
import type { FaultRule } from '../../simulator/faults.ts';
import type { SandboxHabits } from '../../simulator/habits.ts';
import type { SandboxCounters } from '../../simulator/place.ts';
import { Sandbox } from '../../simulator/sandbox.ts';
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
    return new SandboxService(
      await Sandbox.start({ directory, port, beforeListening: writeSecrets, habits: { rsaBits: 1_024 } }),
    );
  }

  /** The sections `service` and `auth` of a configuration. */
  configuration(protocol: Protocol): ReturnType<typeof configurationFor> {
    return configurationFor(this.#sandbox, this.passwordFile, protocol);
  }

  async submit(spec: JobSpec): Promise<JobDescription> {
    return describeJob(await this.#sandbox.submitJob(spec));
  }

  async job(jobId: string): Promise<JobDescription> {
    return describeJob(this.#job(jobId));
  }

  /** Starts, ends or queues a job again. */
  async change(
    jobId: string,
    word: 'submit' | 'finish' | 'fail' | 'requeue',
    { message }: { readonly message?: string } = {},
  ): Promise<JobDescription> {
    const job = this.#job(jobId);
    if (word === 'submit') await job.submit();
    else if (word === 'requeue') await job.requeue();
    else await job.end(word === 'fail' ? 'Failed' : 'Finished', message);
    return this.job(jobId);
  }

  /** Gives a job one more task. */
  async addTask(jobId: string, spec: TaskSpec): Promise<JobDescription> {
    await this.#sandbox.addTask(this.#job(jobId), spec);
    return this.job(jobId);
  }

  /** Waits until all processes of a job have ended. */
  async finished(jobId: string): Promise<void> {
    await until(`the processes of job ${jobId} to end`, async () =>
      (await this.job(jobId)).tasks.every(({ state }) => state === 'ended'),
    );
  }

  async fault(rule: FaultRule): Promise<void> {
    this.#sandbox.faults.add(rule);
  }

  async clearFaults(): Promise<void> {
    this.#sandbox.faults.clear();
  }

  async setHabits(habits: Partial<SandboxHabits>): Promise<void> {
    this.#sandbox.setHabits(habits);
  }

  /** The last calls, the youngest last. */
  async calls(): Promise<RecordedCall[]> {
    return [...this.#sandbox.calls];
  }

  async counters(): Promise<SandboxCounters> {
    return this.#sandbox.counters;
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

  /** Ends it with the processes of its jobs. */
  async stop(): Promise<void> {
    await this.#sandbox.close();
  }

  #job(jobId: string): SubmittedJob {
    const job = this.#sandbox.job(jobId);
    if (job === undefined) throw new Error(`the sandbox has no job ${jobId}`);
    return job;
  }
}
