/** The five operations of the file-transfer service over REST, for all of its releases (docs/dev/rest.md). */
import type { JobService, Listing, Part, PartRequest, Parts, Remote, Sink, TransferMethod } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import type { Secrets } from '../../redact.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { StreamedFile } from '../content/lifted.ts';
import { readParts, type SpillPlace } from '../content/response-texts.ts';
import { ITEM } from './answer/scanner.ts';
import { type Call, RestCalls, type RestCallsOptions } from './calls.ts';
import type { PathForm, RestCapabilities } from './capabilities.ts';
import { JOB_STATES, PART, REQUEST } from './contract.ts';
import { DecodedFiles } from './decoded-files.ts';
import { ListedFiles } from './listed-files.ts';
import { ONLY_BY_SSH, unexpected } from './refusals.ts';
import { divideByBytes, JsonNumber, partsBytes, partsMembers } from './requests.ts';
import { CLOSE_PATH, entriesOf, givenMethod, requireLifted, secretsOf, transferMethodOf } from './results.ts';

export interface RestRemoteOptions extends RestCallsOptions {
  readonly spill: SpillPlace;
  readonly maxSmallAnswerBytes: number;
}

/** A response with a listing contains more than the names. */
const LISTING_TIMES = 4;

/** Characters that no release accepts in a path (docs/dev/rest.md 3.4). */
const REFUSED_CHARACTER = /[^A-Za-z0-9_\-./\\ ~]/u;

type MembersOf = Call['members'];

export class RestRemote implements Remote {
  readonly #options: RestRemoteOptions;
  readonly #capabilities: RestCapabilities;
  readonly #secrets: Secrets;
  readonly #calls: RestCalls;
  readonly #decoded = new DecodedFiles();

  constructor(options: RestRemoteOptions) {
    this.#options = options;
    this.#capabilities = options.capabilities;
    this.#secrets = options.secrets;
    this.#calls = new RestCalls(options);
  }

  divide(jobId: JobId, wanted: readonly PartRequest[]): PartRequest[][] {
    const { sessionBytes } = this.#calls;
    return divideByBytes(jobId, wanted, { maxBytes: this.#capabilities.partsBytes, sessionBytes });
  }

  async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const parts: Part[] = [];
    let refused = 0;
    let isCut = false;
    try {
      for (const slice of this.divide(jobId, wanted)) {
        const read = await this.#readSlice(jobId, slice, signal);
        parts.push(...read.parts);
        refused += read.refused;
        isCut ||= read.isCut;
      }
      this.#decoded.learn(jobId, 'came');
      return { parts, refused, isCut };
    } catch (error) {
      if (error instanceof JobtailError && error.code === 'fault') this.#decoded.learn(jobId, 'refused');
      for (const { content } of parts) await content.release();
      throw error;
    }
  }

  async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing> {
    const { maxSmallAnswerBytes } = this.#options;
    const lifted = new ListedFiles(maxSmallAnswerBytes);
    const answered = await this.#calls.call({
      ...{ operation: 'ListChangedFilesForJob', members: ofJob(jobId), lifted, signal },
      rule: { path: [ITEM], as: 'record', orText: true },
      maxBytes: LISTING_TIMES * maxSmallAnswerBytes,
    });
    if (answered.kind === 'success') requireLifted(answered.rest);
    return lifted.listing;
  }

  async downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, headersMs?: number): Promise<number> {
    this.#requireAskable(path);
    let first: unknown;
    for (const form of this.#capabilities.pathForms) {
      try {
        return await this.#download({ jobId, path: pathBy(form, jobId, path), form, sink, signal, headersMs });
      } catch (error) {
        // Only the response shows which form a release accepts.
        if (!(error instanceof JobtailError && error.policy.isRefusal)) throw error;
        this.#requireAskable(path);
        first ??= error;
      }
    }
    throw first;
  }

  #requireAskable(path: string): void {
    const reason = this.reasonAgainst(path);
    if (reason !== undefined) throw new JobtailError('usage', `this file cannot be requested: ${reason}`);
  }

  reasonAgainst(name: string): string | undefined {
    const { maxPathCharacters } = this.#capabilities;
    const character = REFUSED_CHARACTER.exec(name)?.[0];
    if (character !== undefined)
      return `the service hands out no file with the character ${character} in its name${WAY_AROUND}`;
    if (slashed(name).length <= maxPathCharacters) return undefined;
    return `the service hands out no file with a path of more than ${maxPathCharacters} characters${WAY_AROUND}`;
  }

  async getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    const operation = 'GetFileTransferMethod';
    const answered = await this.#small({ operation, members: ofJob(jobId), signal });
    const method = transferMethodOf(answered.kind === 'success' ? answered.rest : null);
    this.#keepSecrets(method);
    return method;
  }

  async endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    this.#keepSecrets(method);
    const publicKey = method.credentials?.publicKey ?? null;
    const members: MembersOf = ({ path }) => ({
      [REQUEST.jobId]: new JsonNumber(jobId),
      ...(path === CLOSE_PATH ? { [REQUEST.publicKey]: publicKey } : { [REQUEST.usedMethod]: givenMethod(method) }),
    });
    await this.#small({ operation: 'EndFileTransfer', members, signal });
  }

  async #readSlice(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    const members: MembersOf = () => partsMembers(jobId, wanted);
    try {
      return await readParts(wanted, this.#options.spill, async (lifted) => {
        const answered = await this.#calls.call({
          ...{ operation: 'DownloadPartsOfJobFilesFromCluster', members, lifted, bulky: true, signal },
          rule: { path: [ITEM, PART.content.toLowerCase()], as: 'text' },
          maxBytes: this.#options.maxSmallAnswerBytes,
        });
        return answered.kind === 'success' ? entriesOf(answered.rest, lifted.texts) : [];
      });
    } catch (error) {
      const isTooLong = error instanceof JobtailError && error.code === 'request-too-long';
      if (!isTooLong) throw error;
      this.#capabilities.partsTooLong(partsBytes(jobId, wanted, this.#calls.sessionBytes));
      if (wanted.length === 1) throw error;
      return await this.readParts(jobId, wanted, signal);
    }
  }

  async #download({ jobId, path, form, sink, signal, headersMs }: Download): Promise<number> {
    const watched = this.#decoded.watch(jobId, sink);
    const file = new StreamedFile(watched.sink, signal);
    const members: MembersOf = () => ({ [REQUEST.jobId]: new JsonNumber(jobId), [REQUEST.path]: path });
    const call = this.#calls.call({
      ...{ operation: 'DownloadFileFromCluster', members, lifted: file, bulky: true, headersMs, signal },
      rule: { path: [], as: 'base64' },
      maxBytes: this.#options.maxSmallAnswerBytes,
      onInvalid: () => this.#capabilities.pathRefused(path.length),
    });
    const answered = await file.fill(call);
    const isOther = answered.kind === 'success' && answered.rest !== null;
    if (file.length === undefined && isOther) throw unexpected('it contains no file');
    const length = file.requireLength('it may have been removed since it was listed, or the job is not submitted yet');
    this.#capabilities.worksBy(form);
    watched.requireBytes();
    return length;
  }

  #keepSecrets(method: TransferMethod | null): void {
    for (const secret of secretsOf(method)) this.#secrets.add('transfer-key', secret);
  }

  #small(call: Omit<Call, 'maxBytes'>) {
    return this.#calls.call({ ...call, maxBytes: this.#options.maxSmallAnswerBytes });
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

const WAY_AROUND = `; ${ONLY_BY_SSH}`;

const ofJob =
  (jobId: JobId): MembersOf =>
  () => ({ [REQUEST.jobId]: new JsonNumber(jobId) });

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
    const lifted = new JobRecords({ task: ITEM, asked: jobId });
    const answered = await this.#calls.call({
      ...{ operation: 'GetCurrentInfoForJob', lifted, signal },
      members: () => ({ [REQUEST.jobId]: new JsonNumber(jobId) }),
      rule: { path: [], as: 'record' },
      maxBytes: MAX_JOBS_BYTES,
    });
    const isOther = answered.kind === 'success' && answered.rest !== null;
    if (lifted.jobs.length === 0 && isOther) throw unexpected('it contains no job');
    return inWords(lifted.only(unexpected));
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const lifted = new JobRecords({ task: ITEM });
    const answered = await this.#calls.call({
      ...{ operation: 'ListJobsForCurrentUser', lifted, bulky: true, signal },
      members: () => ({}),
      rule: { path: [ITEM], as: 'record' },
      maxBytes: MAX_JOBS_BYTES,
    });
    if (answered.kind === 'success') requireLifted(answered.rest);
    return lifted.jobs.map(inWords);
  }
}

function inWords(job: JobInformation): JobInformation {
  const wordOf = (state: string | null) => (state === null ? null : (STATE_OF.get(state) ?? state));
  const tasks = job.tasks.map((task) => ({ ...task, state: wordOf(task.state) }));
  return { ...job, state: wordOf(job.state), tasks };
}
