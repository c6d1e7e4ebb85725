/** PHP's SoapServer as a server of the contract. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Grant, TransferMethod } from '../../src/agent/ports/server.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import { FILE_TYPE_OF, wsdlOf } from '../../src/remote/soap/contract.ts';
import { ForeignProcess } from './foreign-process.ts';
import {
  type ContractService,
  RELATIVE_PATHS,
  SERVED_HABITS,
  type ServedHabits,
  type ServedJob,
  type UnderstoodCall,
} from './service.ts';

/** With what XML has to escape, and with blanks at its ends. */
const SESSION_CODE = ' kód &<"\'> \u{1F600}7 ';
const TOKEN = 'bearer.token+/=';
const NAMESPACE = 'http://middleware.example/';

/** A SubmittedJobInfoExt; `tasks` may be missing (docs/dev/soap.md 10.2). */
export interface ServedInformation extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly tasks?: { readonly SubmittedTaskInfoExt: readonly (Readonly<Record<string, unknown>> | null)[] };
}

/** What only a server can do that is reported its answers. */
export interface PhpJob extends ServedJob {
  /** What JobManagementWs tells of jobs, which need not be the one that FileTransferWs knows. */
  readonly information?: readonly ServedInformation[];
  /** Answers of operations, given as PHP encodes them by the WSDL. */
  readonly answers?: Partial<Readonly<Record<Operation, unknown>>>;
}

/** A call with all that PHP was shown. */
export interface PhpCall extends UnderstoodCall {
  readonly contentType: string | null;
  readonly soapAction: string | null;
  /** The whole request as it arrived. */
  readonly raw: string;
}

export class PhpService implements ContractService<PhpJob> {
  readonly namespace = NAMESPACE;
  readonly url: string;
  /** {jobs_url}. */
  readonly jobsUrl: string;
  readonly #directory: string;
  readonly #process: ForeignProcess;

  private constructor(directory: string, process: ForeignProcess, address: string) {
    this.#directory = directory;
    this.#process = process;
    this.url = `${address}/FileTransferWs`;
    this.jobsUrl = `${address}/JobManagementWs`;
  }

  static async start(): Promise<PhpService> {
    const directory = await mkdtemp(join(tmpdir(), 'jobtail-php-'));
    const settings = ['display_errors=0', 'log_errors=1', 'error_log=', 'memory_limit=512M'];
    const script = fileURLToPath(new URL('service.php', import.meta.url));
    const argv = ['php', ...settings.flatMap((setting) => ['-d', setting]), '-S', '127.0.0.1:0', script];
    const process = new ForeignProcess(argv, { CONTRACT_DIRECTORY: directory });
    const [, address = ''] = await process.said(/Development Server \((http:\/\/127\.0\.0\.1:[0-9]+)\) started/);
    for (const service of ['FileTransferWs', 'JobManagementWs'] as const) {
      const wsdl = wsdlOf({ namespace: NAMESPACE, url: `${address}/${service}`, service });
      await writeFile(join(directory, `${service}.wsdl`), wsdl);
    }
    return new PhpService(directory, process, address);
  }

  tells(): boolean {
    return true;
  }

  async serve({ jobId, tasks = [], files = new Map(), held = false, fault, ...job }: PhpJob): Promise<void> {
    const habits = { ...SERVED_HABITS, ...job.habits };
    const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64');
    const live = tasks.flatMap((task) =>
      LIVE_FILE_NAMES.flatMap((file) => {
        const text = task.live[file];
        if (text === undefined) return [];
        const served = { content: base64(text), relativePath: RELATIVE_PATHS[file] };
        return [[`${task.taskId}/${FILE_TYPE_OF[file]}`, served]];
      }),
    );
    const served = {
      namespace: NAMESPACE,
      jobId,
      sessionCode: SESSION_CODE,
      token: TOKEN,
      habits,
      held,
      fault: fault ?? null,
      answers: job.answers ?? {},
      information: job.information ?? [],
      live: Object.fromEntries(live),
      files: [...files].map(([name, bytes]) => ({ name, bytes: base64(bytes) })),
      method: methodOf(jobId, habits),
    };
    await rm(join(this.#directory, 'open-key'), { force: true });
    await writeFile(join(this.#directory, 'calls.jsonl'), '');
    await writeFile(join(this.#directory, 'job.json'), JSON.stringify(served));
  }

  async grant(kind: Grant['kind']): Promise<Grant> {
    return kind === 'session' ? { kind, code: SESSION_CODE } : { kind: 'bearer', token: TOKEN };
  }

  async calls(): Promise<readonly UnderstoodCall[]> {
    return (await this.recorded()).map(({ operation, version, request, authorization }) => {
      const { taskFileOffsets, ...fields } = request;
      const entries = (taskFileOffsets as { readonly TaskFileOffsetExt?: unknown } | undefined)?.TaskFileOffsetExt;
      const flat = taskFileOffsets === undefined ? fields : { ...fields, taskFileOffsets: entries ?? [] };
      return { operation, version, request: flat, authorization: authorization ?? undefined };
    });
  }

  /** The calls as PHP wrote them down. */
  async recorded(): Promise<readonly PhpCall[]> {
    const lines = await readFile(join(this.#directory, 'calls.jsonl'), 'utf8');
    return lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as PhpCall);
  }

  async openKeys(): Promise<readonly string[]> {
    return await readFile(join(this.#directory, 'open-key'), 'utf8').then(
      (key) => [key],
      () => [],
    );
  }

  /** @throws if PHP complained about its program, which its answers would not show */
  async close(): Promise<void> {
    await this.#process.close();
    await rm(this.#directory, { recursive: true, force: true });
    const complaints = this.#process.output.split('\n').filter((line) => /PHP (?!.*Development Server)/.test(line));
    if (complaints.length > 0) throw new Error(complaints.join('\n'));
  }
}

function methodOf(jobId: string, habits: ServedHabits): Omit<TransferMethod, 'credentials'> | null {
  const { transferProtocol: protocol, serverHostname, sharedRoot, transferUsername: username } = habits;
  if (protocol === 'none') return null;
  const method = { serverHostname, sharedBasepath: `${sharedRoot}/${jobId}`, protocol };
  if (protocol === 'NetworkShare') return method;
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const privateKey = pair.privateKey.export({ format: 'pem', type: 'sec1' });
  const publicKey = `ssh-test ${pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')}`;
  return { ...method, credentials: { username, privateKey, publicKey } } as TransferMethod;
}
