/**
 * The simulated cluster: the middleware of docs/dev/soap.md and docs/dev/rest.md on node:http, with the quirks of
 * docs/dev/servers.md, over both protocols at a time. Its jobs are real processes in real directories. Only parts are put
 * together here.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { DEFAULT_PATH } from '../src/remote/rest/contract.ts';
import { Cluster, type SubmittedJob } from './cluster/cluster.ts';
import type { JobSpec, TaskSpec } from './cluster/specs.ts';
import { type KeyHooks, type OpenKey, TransferKeys } from './cluster/transfer-keys.ts';
import { Faults } from './faults.ts';
import { changeHabits, defaultHabits, type SandboxHabits } from './habits.ts';
import { PipeReads } from './operations/pipe-reads.ts';
import { countersOf, type SandboxCounters, type SandboxPlace, submitTo } from './place.ts';
import { Router } from './router.ts';
import { type SandboxUser, Sessions } from './signin/sessions.ts';
import { type RecordedCall, Traffic } from './traffic.ts';

const HOST = '127.0.0.1';

interface SandboxOptions extends KeyHooks {
  /** Holds `jobs/`; created if it is missing, never removed. */
  readonly directory: string;
  /** TCP port; any free one by default. */
  readonly port?: number;
  /** One user `alice` with random secrets by default. */
  readonly users?: readonly SandboxUser[];
  readonly habits?: Partial<SandboxHabits>;
  /** Milliseconds; sessions, keys and the times of jobs go by it. */
  readonly clock?: () => number;
  /** What has to be there when the first call is answered. */
  readonly beforeListening?: (sandbox: Sandbox) => Promise<void>;
}

export class Sandbox {
  /** {service_namespace}. */
  readonly namespace = 'http://sandbox.example.org/';
  readonly directory: string;
  /** May be changed at any time. The first user owns jobs that name no owner. */
  readonly users: SandboxUser[];
  /** May be changed at any time. */
  readonly habits: SandboxHabits;
  readonly faults = new Faults();
  readonly controlToken = randomBytes(24).toString('hex');
  readonly #place: SandboxPlace;
  readonly #router: Router;
  /** Exchanges that have not come to their end. */
  readonly #serving = new Set<Promise<void>>();
  readonly #server: Server;
  #port = 0;

  private constructor(options: SandboxOptions, world: Pick<SandboxPlace, 'cluster' | 'habits' | 'clock'>) {
    const { habits, clock } = world;
    this.habits = habits;
    this.directory = resolve(options.directory);
    this.users = (options.users ?? [defaultUser()]).map((user) => ({ ...user }));
    const { namespace, users, faults, controlToken } = this;
    this.#place = {
      ...{ ...world, namespace, users, faults, controlToken },
      keys: new TransferKeys(habits, clock, options),
      sessions: new Sessions(clock),
      pipeReads: new PipeReads(),
      traffic: new Traffic(),
    };
    this.#router = new Router(this.#place);
    this.#server = this.#createServer();
  }

  /** Starts listening. A port that is taken rejects with the error of the system. */
  static async start(options: SandboxOptions): Promise<Sandbox> {
    const directory = resolve(options.directory);
    await mkdir(directory, { recursive: true });
    const { clock = Date.now } = options;
    const habits = defaultHabits();
    changeHabits(habits, options.habits ?? {});
    const cluster = await Cluster.open(directory, clock);
    const sandbox = new Sandbox(options, { cluster, habits, clock });
    await options.beforeListening?.(sandbox);
    await sandbox.#listen(options.port ?? 0);
    return sandbox;
  }

  /** {base_url} of the sign-ins. */
  get baseUrl(): string {
    return `http://${HOST}:${this.#port}`;
  }

  /** {file_transfer_url}. */
  get fileTransferUrl(): string {
    return `${this.baseUrl}/FileTransferWs`;
  }

  /** Of the REST interface: what {base_url} and the path of the middleware make. */
  get restUrl(): string {
    return this.baseUrl + DEFAULT_PATH;
  }

  /** {jobs_url}; null if the service is not there. */
  get jobsUrl(): string | null {
    return this.habits.jobService ? `${this.baseUrl}/JobManagementWs` : null;
  }

  get counters(): SandboxCounters {
    return countersOf(this.#place);
  }

  /** The last calls of both services, the youngest last. */
  get calls(): readonly RecordedCall[] {
    return this.#place.traffic.recent;
  }

  /** Temporary keys that have not ended. */
  get openKeys(): readonly OpenKey[] {
    return this.#place.keys.open;
  }

  job(id: string): SubmittedJob | undefined {
    return this.#place.cluster.job(id);
  }

  submitJob(spec: JobSpec): Promise<SubmittedJob> {
    return submitTo(this.#place, spec);
  }

  /** Gives one more task to a job. */
  async addTask(job: SubmittedJob, spec: TaskSpec): Promise<void> {
    await this.#place.cluster.addTask(job, spec);
  }

  /** Changes some quirks at once; an unknown name is a `usage` error. */
  setHabits(changes: Partial<SandboxHabits>): void {
    changeHabits(this.habits, changes);
  }

  /** Every session is lost, as after an idle quarter of an hour. */
  expireSessions(): void {
    this.#place.sessions.expire();
  }

  /** Goes away as in an outage: connections are cut and new ones refused. */
  async stopListening(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    this.#place.pipeReads.stop();
    await Promise.all([closed, ...this.#serving]);
  }

  /** Ends every process of its jobs, all calls and all connections. The files stay. */
  async close(): Promise<void> {
    await Promise.all([this.stopListening(), this.#place.cluster.close()]);
  }

  #createServer(): Server {
    // Longer than any client keeps an idle connection: the server never closes one that is just being used.
    return createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
      const served = this.#router.serve(request, response, this.baseUrl);
      this.#serving.add(served);
      void served.finally(() => this.#serving.delete(served));
    });
  }

  async #listen(port: number): Promise<void> {
    this.#server.listen(port, HOST);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }
}

function defaultUser(): SandboxUser {
  const secret = () => randomBytes(18).toString('base64url');
  return { username: 'alice', password: secret(), token: secret() };
}
