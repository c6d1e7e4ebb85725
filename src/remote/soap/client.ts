/** The five operations of the file-transfer service (docs/interface.md 4.1) over SOAP 1.1 or 1.2. */
import type { JobService, PartRequest, Parts, Remote, Sink, TransferMethod } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { ListedNames, StreamedFile } from '../content/lifted.ts';
import { readParts, type SpillPlace } from '../content/response-texts.ts';
import { type Call, SoapCalls, type SoapCallsOptions } from './calls.ts';
import { taskFileOffsets, textArgument, transferMethodArgument } from './envelope.ts';
import { unexpected } from './faults.ts';
import { entriesOf, resultOf, transferMethodOf } from './results.ts';

/** `url` is {file_transfer_url}. Limits exclude the content of files. */
export interface SoapRemoteOptions extends SoapCallsOptions {
  readonly spill: SpillPlace;
}

interface JobCall extends Call {
  readonly jobId: JobId;
}

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
    const fields = { taskFileOffsets: taskFileOffsets(wanted) };
    return await readParts(wanted, this.#options.spill, async (lifted) => {
      const response = await this.#call({ operation, jobId, fields, lifted, bulky: true, signal });
      return entriesOf(resultOf(operation, response), lifted.texts);
    });
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    const operation = 'ListChangedFilesForJob';
    const listed = new ListedNames(this.#options.maxSmallAnswerBytes);
    const response = await this.#call({ operation, jobId, fields: {}, lifted: listed, signal });
    resultOf(operation, response);
    return listed.names;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, headersMs?: number): Promise<number> {
    const file = new StreamedFile(sink, signal);
    const fields = { relativeFilePath: textArgument(path, 'file name') };
    const operation = 'DownloadFileFromCluster';
    await this.#call({ operation, jobId, fields, lifted: file, bulky: true, headersMs, signal }).catch(
      (error: unknown) => {
        throw file.failure === undefined ? error : file.failure.error;
      },
    );
    if (file.length !== undefined) return file.length;
    throw new JobtailError('not-found', 'the service has no such file', {
      hint: 'it may have been removed since it was listed',
    });
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const operation = 'GetFileTransferMethod';
    const response = await this.#call({ operation, jobId, fields: {}, signal });
    const method = transferMethodOf(resultOf(operation, response));
    this.#keepSecret(method);
    return method;
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    this.#keepSecret(method);
    const fields = { usedTransferMethod: transferMethodArgument(method) };
    await this.#call({ operation: 'EndFileTransfer', jobId, fields, signal });
  }

  #keepSecret(method: TransferMethod | null): void {
    const key = method?.credentials?.privateKey;
    if (typeof key === 'string') this.#options.secrets.add('transfer-key', key);
  }

  #call({ jobId, fields, ...call }: JobCall): Promise<unknown> {
    return this.#calls.call({ ...call, fields: { submittedJobInfoId: jobId, ...fields } });
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
    await this.#calls.call({ operation, fields: { submittedJobInfoId: jobId }, lifted, signal });
    const [job] = lifted.jobs;
    if (job === undefined) {
      throw new JobtailError('not-found', `the service has no job ${jobId}`, {
        hint: 'check the job id, and whether the job belongs to auth.username',
      });
    }
    if (job.id !== jobId) throw unexpected(operation, `it is about the job ${job.id}`);
    return job;
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const lifted = new JobRecords({ task: TASK });
    await this.#calls.call({ operation: 'ListJobsForCurrentUser', fields: {}, lifted, bulky: true, signal });
    return lifted.jobs;
  }
}
