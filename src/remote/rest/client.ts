/** The five operations of the file-transfer service over REST, for all of its releases (docs/dev/rest.md). */
import type {
  Content,
  JobService,
  Listing,
  Part,
  PartRequest,
  Parts,
  Remote,
  Sink,
  TransferMethod,
} from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { StreamedFile } from '../content/lifted.ts';
import { ListedNames } from '../content/listed-names.ts';
import { readParts, type SpillPlace } from '../content/response-texts.ts';
import { keepSecrets, transferMethodOf } from '../content/transfer-method.ts';
import { ONLY_DIRECTLY, RestCalls, type RestCallsOptions, type RestServiceCall, unexpected } from './calls.ts';
import type { RestCapabilities } from './capabilities.ts';
import { FILE_TYPES, JOB_STATES, PROTOCOLS, REQUEST } from './contract.ts';
import { DecodedFiles } from './decoded-files.ts';
import { CLOSE_PATH, type PathForm } from './releases.ts';
import { divideByBytes, givenMethod, partsMembers } from './requests.ts';

export interface RestRemoteOptions extends RestCallsOptions {
  readonly spill: SpillPlace;
  readonly maxSmallResponseBytes: number;
}

const FILES = new Map(LIVE_FILE_NAMES.map((file) => [String(FILE_TYPES[file]), file]));

/** All SSH variants are one protocol here. */
const TRANSFER_PROTOCOLS = new Map([
  [String(PROTOCOLS.NetworkShare), 'NetworkShare'],
  [String(PROTOCOLS.SftpScp), 'SftpScp'],
  [String(PROTOCOLS.LocalSftpScp), 'SftpScp'],
] as const);

/** A response with a listing contains more than the names. */
const LISTING_TIMES = 4;

/** Parts are refused where files are not reached by SSH (docs/dev/rest.md 5.2). */
const PERHAPS_DECODED = `if its files are listed all the same, the cluster may be one of FirecREST: ${ONLY_DIRECTLY}`;

type MembersOf = RestServiceCall['members'];

export class RestRemote implements Remote {
  readonly #options: RestRemoteOptions;
  readonly #capabilities: RestCapabilities;
  readonly #calls: RestCalls;
  readonly #decoded = new DecodedFiles();

  constructor(options: RestRemoteOptions) {
    this.#options = options;
    this.#capabilities = options.capabilities;
    this.#calls = new RestCalls(options);
  }

  divide(jobId: JobId, wanted: readonly PartRequest[]): PartRequest[][] {
    return divideByBytes(jobId, wanted, this.#calls.sessionBytes);
  }

  async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const parts: Part[] = [];
    let refused = 0;
    let beginning: Content | undefined;
    try {
      for (const slice of this.divide(jobId, wanted)) {
        const read = await this.#readSlice(jobId, slice, signal);
        parts.push(...read.parts);
        refused += read.refused;
        ({ beginning } = read);
        if (beginning !== undefined) break;
      }
      // An empty response is the same everywhere: of a job that is not submitted, and for ids that are none of its tasks.
      if (parts.length > 0) this.#decoded.learn(jobId, 'came');
      return { parts, refused, beginning };
    } catch (error) {
      for (const { content } of parts) await content.release();
      if (!(error instanceof JobtailError && error.code === 'fault')) throw error;
      this.#decoded.learn(jobId, 'refused');
      throw new JobtailError('fault', error.message, { hint: `${error.hint}; ${PERHAPS_DECODED}` });
    }
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing> {
    const { maxSmallResponseBytes } = this.#options;
    const names = new ListedNames(maxSmallResponseBytes);
    await this.#calls.list({
      operation: 'ListChangedFilesForJob',
      members: ofJob(jobId),
      signal,
      onItem: (item) => names.add(item),
      maxBytes: LISTING_TIMES * maxSmallResponseBytes,
    });
    return names.listing;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, headersMs?: number): Promise<number> {
    this.#requireAskable(path);
    let refused: JobtailError | undefined;
    for (const form of this.#capabilities.pathForms) {
      try {
        return await this.#download({ jobId, path: pathBy(form, jobId, path), form, sink, signal, headersMs });
      } catch (error) {
        // Only the response shows which form a release accepts.
        if (!(error instanceof JobtailError && error.policy.isRefusal)) throw error;
        this.#requireAskable(path);
        // A path of the wrong form leads to nothing.
        if (refused === undefined || refused.inPlace === 'nothing') refused = error;
      }
    }
    throw refused;
  }

  #requireAskable(path: string): void {
    const reason = this.reasonAgainst(path);
    if (reason !== undefined) throw new JobtailError('usage', `this file cannot be requested: ${reason}`);
  }

  reasonAgainst(name: string): string | undefined {
    const reason = this.#capabilities.reasonAgainst(slashed(name));
    return reason === undefined ? undefined : `${reason}; ${ONLY_DIRECTLY}`;
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const { value, json } = await this.#small({ operation: 'GetFileTransferMethod', members: ofJob(jobId), signal });
    const method = transferMethodOf(value, TRANSFER_PROTOCOLS, this.#options.secrets);
    // Some services require the original object at the end.
    return method === null ? null : { ...method, given: json };
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    keepSecrets(method, this.#options.secrets);
    const publicKey = JSON.stringify(method.credentials?.publicKey ?? null);
    const members: MembersOf = ({ path }) => ({
      [REQUEST.jobId]: jobId,
      ...(path === CLOSE_PATH ? { [REQUEST.publicKey]: publicKey } : { [REQUEST.usedMethod]: givenMethod(method) }),
    });
    await this.#small({ operation: 'EndFileTransfer', members, signal });
  }

  async #readSlice(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const { maxSmallResponseBytes: maxBytes, spill } = this.#options;
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const members: MembersOf = () => partsMembers(jobId, wanted);
    return await readParts(wanted, FILES, spill, (taken) =>
      this.#calls.list({ operation, members, ...taken, bulky: true, maxBytes, signal }),
    );
  }

  async #download({ jobId, path, form, sink, signal, headersMs }: Download): Promise<number> {
    const watched = this.#decoded.watch(jobId, sink);
    const file = new StreamedFile(watched.sink, signal);
    const members: MembersOf = () => ({ [REQUEST.jobId]: jobId, [REQUEST.path]: JSON.stringify(path) });
    const { value } = await this.#calls.call({
      operation: 'DownloadFileFromCluster',
      members,
      lifted: file,
      bulky: true,
      headersMs,
      signal,
      maxBytes: this.#options.maxSmallResponseBytes,
      onInvalid: (isTooLong) => this.#capabilities.pathRefused(path, isTooLong),
    });
    if (file.length === undefined && value !== null) throw unexpected('it contains no file');
    const length = file.requireLength('it may have been removed since it was listed, or the job is not submitted yet');
    this.#capabilities.worksBy(form);
    watched.requireBytes();
    return length;
  }

  #small(call: Omit<RestServiceCall, 'maxBytes'>) {
    return this.#calls.call({ ...call, maxBytes: this.#options.maxSmallResponseBytes });
  }
}

interface Download {
  readonly jobId: JobId;
  readonly path: string;
  readonly form: PathForm;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly headersMs: number | undefined;
}

const ofJob =
  (jobId: JobId): MembersOf =>
  () => ({ [REQUEST.jobId]: jobId });

const slashed = (name: string) => `/${name.replace(/^\/+/, '')}`;

function pathBy(form: PathForm, jobId: JobId, name: string): string {
  return form === 'listed' ? slashed(name) : `/${jobId}${slashed(name)}`;
}

const STATE_OF = new Map(Object.entries(JOB_STATES).map(([state, number]) => [String(number), state]));

export class RestJobService implements JobService {
  readonly #calls: RestCalls;

  constructor(options: RestCallsOptions) {
    this.#calls = new RestCalls(options);
  }

  async getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const jobs = new JobRecords(jobId);
    const operation = 'GetCurrentInfoForJob';
    const { value } = await this.#calls.call({ operation, members: ofJob(jobId), maxBytes: MAX_JOBS_BYTES, signal });
    if (value !== null && !(value instanceof Map)) throw unexpected('it contains no job');
    jobs.add(value);
    return inWords(jobs.only(unexpected));
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const jobs = new JobRecords();
    await this.#calls.list({
      operation: 'ListJobsForCurrentUser',
      members: () => ({}),
      bulky: true,
      signal,
      onItem: (item) => jobs.add(item),
      maxBytes: MAX_JOBS_BYTES,
    });
    return jobs.jobs.map(inWords);
  }
}

function inWords(job: JobInformation): JobInformation {
  const wordOf = (state: string | null) => (state === null ? null : (STATE_OF.get(state) ?? state));
  const tasks = job.tasks.map((task) => ({ ...task, state: wordOf(task.state) }));
  return { ...job, state: wordOf(job.state), tasks };
}
