/** The ports of the agent over the simulated service, with the real session calls between them. */
import type {
  JobService,
  Listing,
  Part,
  PartRequest,
  Parts,
  Remote,
  Session,
  Sink,
  TransferMethod,
} from '../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { JobInformation } from '../../src/job-information.ts';
import type { Operation } from '../../src/operations.ts';
import type { Secrets } from '../../src/redact.ts';
import { SessionCalls, secretOf } from '../../src/remote/session-calls.ts';
import { sleep } from '../../src/system/clock.ts';
import { decodeBytes, type Holder, MemoryContent } from '../support/model-remote.ts';
import { grant, refused } from './direct.ts';
import type { Fault, FaultOf } from './faults.ts';
import type { Line } from './line.ts';
import type { SimulatedService } from './service.ts';

interface PortsOptions {
  readonly service: SimulatedService;
  readonly line: Line;
  readonly session: Session;
  readonly secrets: Secrets;
  readonly timeoutMs: number;
  /** Counts the texts that were not given back. */
  readonly holder: Holder;
  /** Called with each call and its outcome. */
  readonly onCall: (operation: string, outcome: 'ok' | ErrorCode) => void;
}

interface Wanted {
  readonly of: FaultOf;
  readonly operation: Operation;
  readonly jobId?: JobId;
  readonly files?: readonly string[];
  readonly silentMs?: number | undefined;
  readonly signal: AbortSignal;
}

const CHUNK_BYTES = 16 * 1024;

export class SimulatedPorts implements Remote, JobService {
  readonly #options: PortsOptions;
  readonly #calls: SessionCalls;

  constructor(options: PortsOptions) {
    this.#options = options;
    const { session, secrets, onCall } = options;
    this.#calls = new SessionCalls({
      session,
      secrets,
      untilAllowed: (signal) => options.line.share.pauseOver(options.line.clock, signal),
      onCall: ({ operation, outcome }) => onCall(operation, outcome),
    });
  }

  readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const { service } = this.#options;
    // The offsets are a part of what is asked for; faults are for files.
    const files = wanted.flatMap((one) => [keyText(one), `from ${one.offset}`]);
    return this.#call({ of: 'parts', operation: 'DownloadPartsOfJobFilesFromCluster', jobId, files, signal }, (cut) => {
      const job = service.job(jobId);
      const shown = job.tasks.map(({ files: each }) =>
        LIVE_FILE_NAMES.map((name) => `${each[name].contents.length} ${each[name].content?.length}`),
      );
      this.#options.line.got(jobId, JSON.stringify(shown));
      const fileOf = ({ taskId, file }: PartRequest) => job.tasks.find(({ id }) => id === taskId)?.files[file];
      const served = cut === undefined ? wanted : wanted.slice(0, wanted.length / 2);
      const parts = served.flatMap((request): Part[] => {
        const file = fileOf(request);
        if (file?.content === undefined || job.isDeleted) return [];
        file.show();
        file.hasEntry = true;
        const { taskId, file: name, offset } = request;
        const shownBytes = file.content.subarray(0, file.shownBytes);
        const text = Buffer.from(decodeBytes(shownBytes, offset, service.decoding));
        const content = new MemoryContent(text, this.#options.holder);
        return [{ taskId, file: name, offset, relativePath: `/${taskId}/${name}.txt`, content }];
      });
      return { parts, refused: 0 };
    });
  }

  listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing> {
    const { service, line } = this.#options;
    return this.#call({ of: 'listing', operation: 'ListChangedFilesForJob', jobId, signal }, async () => {
      const job = service.job(jobId);
      // As the releases do (docs/dev/rest.md 3.6).
      if (job.isDeleted) throw new JobtailError('http-status', `the listing of job ${jobId} fails`);
      const seconds = (at: number) => new Date(Math.floor(at / 1000) * 1000).toISOString();
      const listing = job.listing(service.hasStamps ? seconds : undefined);
      // Files may change meanwhile.
      await service.pause(line.clock, signal);
      return listing;
    });
  }

  downloadFile(jobId: JobId, name: string, sink: Sink, signal: AbortSignal, silentMs?: number): Promise<number> {
    const { service, line } = this.#options;
    const of = service.jobs.get(jobId)?.liveFileAt(name) === undefined ? 'result' : 'raw';
    const wanted = { of, operation: 'DownloadFileFromCluster', jobId, files: [name], signal, silentMs } as const;
    return this.#call(wanted, async (cut) => {
      const job = service.job(jobId);
      const bytes = job.contentAt(name);
      job.liveFileAt(name)?.show();
      const kind = job.isDeleted ? undefined : job.results.get(name)?.kind;
      // The same words are those of a disk that fails.
      if (kind === 'link to a directory') service.failed.add(jobId);
      const refusal = refused(name, bytes === undefined ? undefined : (kind ?? 'file'));
      if (bytes === undefined || refusal !== undefined) throw refusal;
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        if (at > 0) await sleep(line.clock, 5, signal);
        if (cut !== undefined && at >= bytes.length / 2) break;
        await sink(bytes.subarray(at, at + CHUNK_BYTES));
      }
      if (bytes.length === 0) line.gotEmpty(jobId);
      if (cut !== undefined) throw new JobtailError('interrupted', 'the connection broke within the answer');
      return bytes.length;
    });
  }

  getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod> {
    const { service } = this.#options;
    return this.#call({ of: 'listing', operation: 'GetFileTransferMethod', jobId, signal }, () =>
      grant(service, jobId),
    );
  }

  endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    const { keys } = this.#options.service;
    const publicKey = method.credentials?.publicKey ?? '';
    // A job may have several keys.
    const call = { of: 'revoke', operation: 'EndFileTransfer', jobId, files: [publicKey], signal } as const;
    return this.#call(call, () => {
      for (const key of keys) if (key.publicKey === publicKey) keys.delete(key);
    });
  }

  getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const { service } = this.#options;
    return this.#call({ of: 'report', operation: 'GetCurrentInfoForJob', jobId, signal }, () => {
      const [found] = service.report(service.job(jobId), 'report');
      if (found === undefined) throw new JobtailError('not-found', `there is no job ${jobId}`);
      return found;
    });
  }

  listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const { service, line } = this.#options;
    return this.#call({ of: 'list', operation: 'ListJobsForCurrentUser', signal }, () => service.list(line.clock));
  }

  #call<T>(wanted: Wanted, answer: (cut: Fault | undefined) => T | Promise<T>): Promise<T> {
    const { of, operation, jobId, files = [], signal } = wanted;
    const { service, line, timeoutMs } = this.#options;
    const attempt = async (grant: Parameters<typeof secretOf>[0]) => {
      const { silentMs = timeoutMs } = wanted;
      const call = { of, operation, jobId, files, session: secretOf(grant), signal, silentMs };
      const cut = await service.serve(call, line);
      return await answer(cut);
    };
    return this.#calls.call(operation, jobId ?? '', attempt, signal);
  }
}
