/** The five operations of the file-transfer service (docs/dev/soap.md 4.1) over SOAP 1.1 or 1.2. */
import type {
  JobService,
  Listing,
  PartRequest,
  Parts,
  Remote,
  Sink,
  TransferMethod,
} from '../../agent/ports/server.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { StreamedFile } from '../content/lifted.ts';
import { ListedNames } from '../content/listed-names.ts';
import { readParts, type SpillPlace } from '../content/response-texts.ts';
import { keepSecrets, transferMethodOf } from '../content/transfer-method.ts';
import type { Value } from '../content/values.ts';
import { SoapCalls, type SoapCallsOptions } from './calls.ts';
import { FILE_TYPE_OF, PROTOCOLS } from './contract.ts';
import { type RequestFields, taskFileOffsets, textArgument, transferMethodArgument } from './envelope.ts';
import { unexpected } from './faults.ts';

/** `url` is {file_transfer_url}. Limits exclude the content of files. */
export interface SoapRemoteOptions extends SoapCallsOptions {
  readonly spill: SpillPlace;
}

const FILES = new Map(LIVE_FILE_NAMES.map((file) => [FILE_TYPE_OF[file] as string, file]));
const TRANSFER_PROTOCOLS = new Map(PROTOCOLS.map((protocol) => [protocol as string, protocol]));

const ofJob = (jobId: JobId, fields: RequestFields = {}): RequestFields => ({ submittedJobInfoId: jobId, ...fields });

export class SoapRemote implements Remote {
  readonly #options: SoapRemoteOptions;
  readonly #calls: SoapCalls;

  /** @throws JobtailError config for a namespace that no request can carry */
  constructor(options: SoapRemoteOptions) {
    this.#options = options;
    this.#calls = new SoapCalls(options);
  }

  async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const fields = ofJob(jobId, { taskFileOffsets: taskFileOffsets(wanted) });
    return await readParts(wanted, FILES, this.#options.spill, (taken) =>
      this.#calls.call({ operation, fields, ...taken, bulky: true, signal }),
    );
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing> {
    const names = new ListedNames(this.#options.maxSmallResponseBytes);
    const onItem = (item: Value) => names.add(item);
    await this.#calls.call({ operation: 'ListChangedFilesForJob', fields: ofJob(jobId), onItem, signal });
    return names.listing;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, headersMs?: number): Promise<number> {
    const file = new StreamedFile(sink, signal);
    const fields = ofJob(jobId, { relativeFilePath: textArgument(path, 'file name') });
    const operation = 'DownloadFileFromCluster';
    await this.#calls.call({ operation, fields, lifted: file, bulky: true, headersMs, signal });
    return file.requireLength('it may have been removed since it was listed');
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const result = await this.#calls.call({ operation: 'GetFileTransferMethod', fields: ofJob(jobId), signal });
    return transferMethodOf(result, TRANSFER_PROTOCOLS, this.#options.secrets);
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    keepSecrets(method, this.#options.secrets);
    const fields = ofJob(jobId, { usedTransferMethod: transferMethodArgument(method) });
    await this.#calls.call({ operation: 'EndFileTransfer', fields, signal });
  }
}

export class SoapJobService implements JobService {
  readonly #calls: SoapCalls;

  constructor(options: Omit<SoapCallsOptions, 'service' | 'maxSmallResponseBytes'>) {
    this.#calls = new SoapCalls({ ...options, service: 'JobManagementWs', maxSmallResponseBytes: MAX_JOBS_BYTES });
  }

  async getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const operation = 'GetCurrentInfoForJob';
    const jobs = new JobRecords(jobId);
    jobs.add(await this.#calls.call({ operation, fields: ofJob(jobId), signal }));
    return jobs.only((what) => unexpected(operation, what));
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const jobs = new JobRecords();
    const onItem = (item: Value) => jobs.add(item);
    await this.#calls.call({ operation: 'ListJobsForCurrentUser', fields: {}, onItem, bulky: true, signal });
    return jobs.jobs;
  }
}
