/** An agent as a process beside a sandbox in this process, whose temporary keys a real sshd accepts. */
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'vitest';
import type { SubmittedJob } from '../../simulator/cluster/cluster.ts';
import type { SandboxHabits } from '../../simulator/habits.ts';
import { Sandbox } from '../../simulator/sandbox.ts';
import { privateDirectoryPrefix } from '../../src/direct/private-directory.ts';
import { restrictedCommand } from '../direct/sshd.ts';
import { Place, type Sections } from './e2e-place.ts';
import { onlyTask } from './e2e-sandbox.ts';
import type { Sshd } from './sshd.ts';

/** What `status --json` says of the results of the job. */
interface JobStatus {
  readonly results: {
    readonly listed: number;
    readonly synced: number;
    readonly failed: number;
    readonly lastSync: { readonly way: string | null; readonly fallback: string | null; readonly done: number } | null;
    readonly transferMethod: {
      readonly state: string;
      readonly way: string | null;
      readonly reason: string | null;
    } | null;
    readonly notSynced: readonly { readonly name: string; readonly state: string; readonly reason: string }[];
  };
}

interface ResultsPlaceOptions {
  readonly sshd?: Sshd;
  /** What the keys may do; everything if left out. */
  readonly allowed?: 'rsync' | 'nothing';
  readonly habits?: Partial<SandboxHabits>;
  readonly results?: Sections;
  readonly sections?: Sections;
}

export class ResultsE2e {
  readonly place: Place;
  readonly sandbox: Sandbox;
  readonly job: SubmittedJob;
  /** Where private keys are while they are used. */
  readonly runtime: string;

  private constructor(place: Place, sandbox: Sandbox, job: SubmittedJob, runtime: string) {
    this.place = place;
    this.sandbox = sandbox;
    this.job = job;
    this.runtime = runtime;
  }

  static async start(context: TestContext, options: ResultsPlaceOptions): Promise<ResultsE2e> {
    const { sshd, allowed } = options;
    const place = Place.make(context);
    const user = { username: 'alice', password: 'correct horse', token: 'token' };
    const cluster = path.join(place.directory, 'cluster');
    const sandbox = await Sandbox.start({
      directory: cluster,
      users: [user],
      habits: {
        keyFormat: 'ed25519-openssh',
        ...(sshd === undefined ? {} : { serverHostname: sshd.host }),
        ...options.habits,
      },
      onKeyIssued: (jobId, publicKey) => {
        const root = path.join(fs.realpathSync(cluster), 'jobs', jobId);
        sshd?.allow(
          publicKey,
          allowed === undefined ? undefined : restrictedCommand(place.directory, root, allowed === 'rsync'),
        );
      },
      onKeyEnded: (_, publicKey) => sshd?.refuse(publicKey),
    });
    context.onTestFinished(() => sandbox.close());
    const passwordFile = path.join(place.directory, 'password');
    fs.writeFileSync(passwordFile, user.password, { mode: 0o600 });
    const runtime = path.join(place.directory, 'runtime');
    fs.mkdirSync(runtime, { mode: 0o700 });
    place.configure(
      { baseUrl: sandbox.baseUrl, username: user.username, passwordFile },
      { ...options.sections, results: { intervalSeconds: 1, transfer: 'direct', ...options.results } },
    );
    const job = await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '11' }] });
    return new ResultsE2e(place, sandbox, job, runtime);
  }

  /** Writes a result on the cluster. */
  put(name: string, content: string | Buffer): string {
    const file = path.join(onlyTask(this.job).directory, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
    return file;
  }

  /** Where it is here. */
  result(name: string): string {
    return path.join(this.place.mirror, '501', 'results', '11', name);
  }

  /** What the state says of the job. */
  async status(): Promise<JobStatus> {
    const [job] = (await this.place.status('501')).jobs as readonly unknown[] as readonly JobStatus[];
    if (job === undefined) throw new Error('job 501 is not there');
    return job;
  }

  /** Files of this agent that hold a private key; those of agents of other tests, in the directory of all, do not count. */
  privateKeysOnDisk(): string[] {
    const places = [this.place.state, this.place.mirror, this.runtime];
    const shared = process.env['XDG_RUNTIME_DIR'] ?? '/dev/shm';
    if (fs.existsSync(shared)) {
      const ours = privateDirectoryPrefix(this.place.state);
      const names = fs.readdirSync(shared).filter((name) => name.startsWith(ours));
      places.push(...names.map((name) => path.join(shared, name)));
    }
    return places.flatMap((directory) => filesWith(directory, 'PRIVATE KEY-----'));
  }
}

function filesWith(directory: string, text: string): string[] {
  if (!fs.existsSync(directory)) return [];
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => {
      try {
        return fs.readFileSync(file).includes(text);
      } catch {
        return false;
      }
    });
}
