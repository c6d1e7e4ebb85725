/** The service of a generated history: answers each call from the cluster as it is reported, or fails. */
import fs from 'node:fs/promises';
import path from 'node:path';
import type {
  JobService,
  Listing,
  PartRequest,
  Parts,
  Remote,
  Sink,
  TransferMethod,
} from '../../../src/agent/ports/server.ts';
import type { DirectFile, DirectRequest, DirectTransfer, Irregular } from '../../../src/agent/ports/transfer.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { JobId } from '../../../src/job.ts';
import type { JobInformation } from '../../../src/job-information.ts';
import type { Operation } from '../../../src/operations.ts';
import { Secrets } from '../../../src/redact.ts';
import { refusalOf } from '../../../src/remote/refusals.ts';
import { type Clock, sleep } from '../../../src/system/clock.ts';
import { decodeBytes, MemoryContent } from '../../support/model-remote.ts';
import type { Chance } from '../chance.ts';
import type { ResultKind, SimulatedJob, Spelling } from '../cluster.ts';
import type { Fault, FaultOf, Setting } from './steps.ts';

/** The time limit of a call. */
const SILENT_MS = 10_000;
/** So much later, the agent has used what it was told. */
const USED_MS = 5_000;
const BAD_NAME = '/out/\u0001';

/** How V6.3.2 refuses what is no readable file (docs/dev/rest.md 3.6). */
const WORDS: Partial<Record<ResultKind, string>> = {
  'link to a directory': 'Failure',
  'dead link': "No such file. Path: '/scratch/nothing'.",
  unreadable: 'Permission denied',
};
const IRREGULAR: Partial<Record<ResultKind, Irregular>> = {
  'link to a directory': 'a link to a directory',
  'dead link': 'a link to a missing file',
};

interface Key {
  readonly jobId: JobId;
  readonly publicKey: string;
}

interface ServiceWorld {
  readonly wallMs: () => number;
  /** Whether the agent follows a job. */
  readonly isFollowed: (jobId: JobId) => boolean;
}

export class LifeService {
  readonly jobs = new Map<JobId, SimulatedJob>();
  /** Of the setting, which stay until all is healed. */
  lasting: Fault[] = [];
  faults: Fault[] = [];
  readonly delays = { list: 0, report: 0 };
  readonly forgotten = { list: new Set<JobId>(), report: new Set<JobId>() };
  spelling: Spelling;
  /** Temporary keys that are valid. */
  readonly keys = new Set<Key>();
  /** Jobs for which a call failed. */
  readonly failed = new Set<JobId>();
  /** Whether it answered: its clock is known. */
  isKnown = false;
  /** Jobs for which a call hung. */
  readonly hung = new Set<JobId>();
  /** When the list first had each job as deleted. */
  readonly deletedAt = new Map<JobId, number>();
  /** Jobs whose deletion was reported, and for which a file was asked all the same. */
  offence: string | undefined;
  readonly #setting: Setting;
  readonly #chance: Chance;
  readonly #world: ServiceWorld;
  #granted = 0;

  constructor(setting: Setting, chance: Chance, world: ServiceWorld) {
    this.#setting = setting;
    this.#chance = chance;
    this.#world = world;
    this.spelling = setting.spelling;
  }

  get allFaults(): readonly Fault[] {
    return [...this.faults, ...this.lasting];
  }

  resultName(name: number, kind: ResultKind): string {
    return kind === 'bad name' ? `${BAD_NAME}${name}` : `/out/result-${name}.dat`;
  }

  /** What the agent calls; of a process that ended, no call is answered. */
  portsFor(clock: Clock): Remote & JobService & { readonly transfer: DirectTransfer } {
    const call = <T>(of: FaultOf, operation: Operation, jobId: JobId | null, signal: AbortSignal, answer: () => T) =>
      this.#call({ of, operation, jobId, signal, clock }, answer);
    return {
      readParts: (jobId, wanted, signal) =>
        call('parts', 'DownloadPartsOfJobFilesFromCluster', jobId, signal, () => this.#parts(jobId, wanted)),
      listChangedFiles: (jobId, signal) =>
        call('listing', 'ListChangedFilesForJob', jobId, signal, () => this.#listing(jobId)),
      downloadFile: async (jobId, name, sink, signal) => {
        const isLive = this.jobs.get(jobId)?.liveFileAt(name) !== undefined;
        const of = isLive ? 'raw' : 'result';
        const bytes = await call(of, 'DownloadFileFromCluster', jobId, signal, () => this.#contentOf(jobId, name));
        return await send(bytes, sink);
      },
      getTransferMethod: (jobId, signal) =>
        call('listing', 'GetFileTransferMethod', jobId, signal, () => this.#grant(jobId)),
      endTransfer: (jobId, method, signal) =>
        call('revoke', 'EndFileTransfer', jobId, signal, () => {
          for (const key of this.keys) if (key.publicKey === method.credentials?.publicKey) this.keys.delete(key);
        }),
      getJob: (jobId, signal) =>
        call('report', 'GetCurrentInfoForJob', jobId, signal, () => {
          const found = this.#report(jobId, this.delays.report);
          if (found === undefined || this.forgotten.report.has(jobId))
            throw new JobtailError('not-found', `there is no job ${jobId}`);
          return found;
        }),
      listJobs: (signal) =>
        call('list', 'ListJobsForCurrentUser', null, signal, () =>
          [...this.jobs.values()].flatMap(({ id, isListed }) =>
            isListed && !this.forgotten.list.has(id) ? (this.#report(id, this.delays.list) ?? []) : [],
          ),
        ),
      transfer: this.#transfer(clock),
    };
  }

  /** Faults that concern a job; with `orAll`, those of all jobs, too. */
  faultsOf(jobId: JobId, orAll = false): readonly Fault[] {
    const number = this.#numberOf(jobId);
    return this.allFaults.filter(({ job }) => job === number || (orAll && job === null));
  }

  async #call<T>(
    call: {
      readonly of: FaultOf;
      readonly operation: Operation;
      readonly jobId: JobId | null;
      readonly signal: AbortSignal;
      readonly clock: Clock;
    },
    answer: () => T,
  ): Promise<T> {
    const { of, operation, jobId, signal, clock } = call;
    if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
    const { workMs } = this.#setting;
    const isOfFiles = of === 'parts' || of === 'raw' || of === 'result';
    const deletedAt = jobId === null ? undefined : this.deletedAt.get(jobId);
    if (isOfFiles && deletedAt !== undefined && clock.monotonic() - deletedAt > USED_MS)
      this.offence ??= `${operation} of job ${jobId} ${Math.round((clock.monotonic() - deletedAt) / 1_000)} s after it was reported as deleted`;
    const fault = this.#faultOf(of, jobId);
    if (fault !== undefined) this.#note(fault, jobId);
    if (fault?.code === 'silent') {
      if (jobId !== null) this.hung.add(jobId);
      await sleep(clock, SILENT_MS, signal);
      throw new JobtailError('timeout', 'the service did not start to respond in time');
    }
    await sleep(clock, workMs * (0.5 + this.#chance.next()), signal);
    // What is refused is not asked again.
    if (of === 'revoke' && fault?.code === 'fault')
      for (const key of this.keys) if (key.jobId === jobId) this.keys.delete(key);
    if (fault !== undefined) throw new JobtailError(fault.code, `the service fails: ${fault.code}`);
    const answered = answer();
    this.isKnown = true;
    // A pass asks for the report of one job, too, and tells nobody else.
    if (of === 'list') this.#noteDeleted(answered, clock);
    return answered;
  }

  #faultOf(of: FaultOf, jobId: JobId | null): Fault | undefined {
    const number = jobId === null ? null : this.#numberOf(jobId);
    return this.allFaults.find(
      (fault) => fault.of === 'all' || (fault.of === of && (fault.job === null || fault.job === number)),
    );
  }

  /** The number of a job, as the steps name it. */
  #numberOf(jobId: JobId): number {
    return [...this.jobs.keys()].indexOf(jobId);
  }

  #note({ job }: Fault, jobId: JobId | null): void {
    if (job === null) for (const id of this.jobs.keys()) this.failed.add(id);
    else if (jobId !== null) this.failed.add(jobId);
  }

  #noteDeleted(answered: unknown, clock: Clock): void {
    for (const { id, state } of [answered].flat() as JobInformation[])
      if (state === 'Deleted' && !this.deletedAt.has(id) && this.#world.isFollowed(id))
        this.deletedAt.set(id, clock.monotonic());
  }

  #report(jobId: JobId, delayMs: number): JobInformation | undefined {
    const job = this.jobs.get(jobId);
    const report = job?.reportLate(this.#world.wallMs() - delayMs);
    return job && report && job.information(report, this.spelling, this.#setting.clockMs);
  }

  #job(jobId: JobId): SimulatedJob {
    const job = this.jobs.get(jobId);
    if (job === undefined) throw new JobtailError('not-found', `there is no job ${jobId}`);
    return job;
  }

  #parts(jobId: JobId, wanted: readonly PartRequest[]): Parts {
    const job = this.#job(jobId);
    const parts = wanted.flatMap(({ taskId, file, offset }) => {
      const found = job.isDeleted ? undefined : job.liveFile(taskId, file);
      if (found?.content === undefined) return [];
      const shown = found.content.subarray(0, found.shownBytes);
      const content = new MemoryContent(Buffer.from(decodeBytes(shown, offset)));
      return [{ taskId, file, offset, relativePath: `/${file}.txt`, content }];
    });
    return { parts, refused: 0 };
  }

  #listing(jobId: JobId): Listing {
    const job = this.#job(jobId);
    if (job.isDeleted) throw new JobtailError('unavailable', 'SSH Problem: No such file');
    return job.listing(this.#setting.hasDates ? (at) => new Date(at).toISOString() : undefined);
  }

  #contentOf(jobId: JobId, name: string): Buffer {
    const job = this.#job(jobId);
    const result = job.isDeleted ? undefined : job.results.get(name);
    const words = result && WORDS[result.kind];
    const content = job.contentAt(name);
    if (content !== undefined && words === undefined) return content;
    // The same words are those of a disk that fails.
    if (result?.kind === 'link to a directory') this.failed.add(jobId);
    throw refusal(name, words ?? "No such file. Path: '/scratch'.");
  }

  #grant(jobId: JobId): TransferMethod {
    this.#granted += 1;
    const key = { jobId, publicKey: `ssh-ed25519 ${this.#granted}` };
    this.keys.add(key);
    const credentials = { username: 'alice', privateKey: 'a private key', publicKey: key.publicKey };
    return { serverHostname: `host-of-${jobId}`, sharedBasepath: jobId, protocol: 'SftpScp', credentials };
  }

  #transfer(clock: Clock): DirectTransfer {
    return {
      fetch: async <File extends DirectFile>(request: DirectRequest<File>) => {
        const { method, files, directory, onFiles, onIrregular, onReached, signal } = request;
        await sleep(clock, this.#setting.workMs, signal);
        onReached();
        const job = this.#job(method.sharedBasepath as JobId);
        for (const file of job.isDeleted ? [] : files) {
          const name = `/${file.parts.join('/')}`;
          const { kind = 'file' } = job.results.get(name) ?? {};
          const irregular = IRREGULAR[kind];
          if (irregular !== undefined) onIrregular(file, irregular);
          const content = job.contentAt(name);
          if (content === undefined || kind !== 'file') continue;
          const arrived = path.join(directory, ...file.parts);
          await fs.mkdir(path.dirname(arrived), { recursive: true });
          const handle = await fs.open(arrived, 'w');
          await handle.write(content, 0, content.length, 0);
          await handle.close();
          await onFiles([{ file, path: arrived }]);
        }
      },
      list: async () => ({ files: [], links: 0 }),
    };
  }
}

function refusal(name: string, words: string): JobtailError {
  const problem = {
    words: `Requested path '${name}' was not found. Exception message: '${words}'.`,
    ...{ title: 'Invalid Request', isOwn: true, isPage: false },
  };
  const refused = { operation: 'DownloadFileFromCluster', status: 400, problem, urlKey: 'service' } as const;
  const options = { secrets: new Secrets(), isSessionFault: () => false };
  return refusalOf(
    refused as unknown as Parameters<typeof refusalOf>[0],
    options as unknown as Parameters<typeof refusalOf>[1],
  );
}

async function send(bytes: Buffer, sink: Sink): Promise<number> {
  if (bytes.length > 0) await sink(Buffer.from(bytes));
  return bytes.length;
}
