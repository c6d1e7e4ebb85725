/** The five operations of the file-transfer service (docs/dev/soap.md 4.1) over SOAP 1.1 or 1.2. */
import type { JobService, PartRequest, Parts, Remote, Sink, TransferMethod } from '../../agent/ports.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { ListedNames, StreamedFile } from '../content/lifted.ts';
import { readParts, type SpillPlace } from '../content/response-texts.ts';
import { SoapCalls, type SoapCallsOptions } from './calls.ts';
import { type Fields, taskFileOffsets, textArgument, transferMethodArgument } from './envelope.ts';
import { unexpected } from './faults.ts';
import { entriesOf, resultOf, transferMethodOf } from './results.ts';

/** `url` is {file_transfer_url}. Limits exclude the content of files. */
export interface SoapRemoteOptions extends SoapCallsOptions {
  readonly spill: SpillPlace;
}

const ofJob = (jobId: JobId, fields: Fields = {}): Fields => ({ submittedJobInfoId: jobId, ...fields });

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
    return await readParts(wanted, this.#options.spill, async (lifted) => {
      const response = await this.#calls.call({ operation, fields, lifted, bulky: true, signal });
      return entriesOf(resultOf(operation, response), lifted.texts);
    });
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    const operation = 'ListChangedFilesForJob';
    const listed = new ListedNames(this.#options.maxSmallAnswerBytes);
    const response = await this.#calls.call({ operation, fields: ofJob(jobId), lifted: listed, signal });
    resultOf(operation, response);
    return listed.names;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, headersMs?: number): Promise<number> {
    const file = new StreamedFile(sink, signal);
    const fields = ofJob(jobId, { relativeFilePath: textArgument(path, 'file name') });
    const operation = 'DownloadFileFromCluster';
    await file.fill(this.#calls.call({ operation, fields, lifted: file, bulky: true, headersMs, signal }));
    return file.requireLength('it may have been removed since it was listed');
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const operation = 'GetFileTransferMethod';
    const response = await this.#calls.call({ operation, fields: ofJob(jobId), signal });
    const method = transferMethodOf(resultOf(operation, response));
    this.#keepSecret(method);
    return method;
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    this.#keepSecret(method);
    const fields = ofJob(jobId, { usedTransferMethod: transferMethodArgument(method) });
    await this.#calls.call({ operation: 'EndFileTransfer', fields, signal });
  }

  #keepSecret(method: TransferMethod | null): void {
    const key = method?.credentials?.privateKey;
    if (typeof key === 'string') this.#options.secrets.add('transfer-key', key);
  }
}

const TASK = 'SubmittedTaskInfoExt';
export class SoapJobService implements JobService {
  readonly #calls: SoapCalls;

  constructor(options: Omit<SoapCallsOptions, 'service' | 'maxSmallAnswerBytes'>) {
    this.#calls = new SoapCalls({ ...options, service: 'JobManagementWs', maxSmallAnswerBytes: MAX_JOBS_BYTES });
  }

  async getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const operation = 'GetCurrentInfoForJob';
    const lifted = new JobRecords({ task: TASK, asked: jobId });
    await this.#calls.call({ operation, fields: ofJob(jobId), lifted, signal });
    return lifted.only((what) => unexpected(operation, what));
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const lifted = new JobRecords({ task: TASK });
    await this.#calls.call({ operation: 'ListJobsForCurrentUser', fields: {}, lifted, bulky: true, signal });
    return lifted.jobs;
  }
}
