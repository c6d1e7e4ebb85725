/** The sandbox as a server of the contract. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { SandboxHabits } from '../../simulator/habits.ts';
import { Sandbox } from '../../simulator/sandbox.ts';
import type { Grant } from '../../src/agent/ports/server.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import type { ReleaseName } from '../../src/remote/rest/releases.ts';
import type { Dialect, ServedJob } from './service.ts';

const USER = { username: 'alice', password: 'correct horse', token: 'alices.token+/=' };

/** The task that holds whole files; a name that is listed begins with the id of its specification. */
const FILES_TASK = { taskId: '700', specificationId: '701' };

export class SandboxService {
  readonly #directory: string;
  #sandbox: Sandbox | undefined;
  #served = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async start(): Promise<SandboxService> {
    return new SandboxService(await mkdtemp(join(tmpdir(), 'jobtail-contract-')));
  }

  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) throw new Error('nothing is served yet');
    return this.#sandbox;
  }

  /** Serves a job and no other one from now on, as the dialect has it. */
  async serve(
    { jobId, tasks = [], files = new Map(), held = false, habits }: ServedJob,
    dialect: Dialect,
  ): Promise<void> {
    await this.#sandbox?.close();
    const real = [...files].filter(([name]) => isReal(name));
    const extraFiles = Object.fromEntries(
      [...files].flatMap(([name, bytes]) => (isReal(name) ? [] : [[name, String(bytes)]])),
    );
    const sandbox = await Sandbox.start({
      directory: join(this.#directory, String(++this.#served)),
      users: [USER],
      // Made in no time, unlike RSA keys.
      habits: { ...habits, extraFiles, keyFormat: 'ec-pem', ...releaseOf(dialect) },
    });
    this.#sandbox = sandbox;
    const specs = [...tasks.map(({ taskId }) => ({ taskId })), ...(real.length > 0 ? [FILES_TASK] : [])];
    const job = await sandbox.submitJob({ jobId, held, tasks: specs });
    for (const [index, { live }] of tasks.entries()) {
      for (const file of LIVE_FILE_NAMES) {
        const path = job.tasks[index]?.files[file];
        if (path !== undefined && live[file] !== undefined) await writeFile(path, live[file]);
      }
    }
    for (const [name, bytes] of real) {
      const path = join(job.directory, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes);
    }
  }

  /** What a client has to show. */
  async grant(kind: Grant['kind']): Promise<Grant> {
    const { baseUrl } = this.sandbox;
    const { username: Username, password: Password, token } = USER;
    const [operation, Credentials] =
      kind === 'session'
        ? ['AuthenticateUserAndPassword', { Username, Password }]
        : ['AuthenticateUserOpenId', { Username, OpenIdAccessToken: token }];
    this.sandbox.setHabits({ signInAnswer: kind === 'session' ? 'json-string' : 'header' });
    const response = await fetch(`${baseUrl}/service/UserAndLimitationManagement/${operation}`, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ Credentials }),
    });
    if (response.status !== 200) throw new Error(`the sandbox refused the sign-in with ${response.status}`);
    const code = (await response.json()) as string;
    return kind === 'session' ? { kind, code } : { kind: 'bearer', token };
  }

  async close(): Promise<void> {
    await this.#sandbox?.close();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

const releaseOf = ({ protocol, version }: Dialect): Partial<SandboxHabits> =>
  protocol === 'rest' ? { release: version as ReleaseName } : {};

/** Whether the name can be the one of a real file of the task with whole files. */
function isReal(name: string): boolean {
  return name.startsWith(`/${FILES_TASK.specificationId}/`) && !name.split('/').includes('..');
}
