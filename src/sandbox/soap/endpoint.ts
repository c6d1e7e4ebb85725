/** The addresses of both services: from an HTTP request to a call, and from its result or failure to an answer. */
import type { ServiceName } from '../../remote/soap/contract.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import { delay, type Exchange, readBody, sendAnswer, sendText, spoil } from '../exchange.ts';
import type { FaultRule, FaultSubject } from '../faults.ts';
import type { SandboxPlace } from '../place.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import type { SandboxUser } from '../signin/sessions.ts';
import { entriesOf } from '../traffic.ts';
import { answerType, envelopeOf, faultDocument } from './answer.ts';
import { FILE_OF_TYPE } from './download-parts.ts';
import { JobInformation } from './job-information.ts';
import { runOperation } from './operations.ts';
import { readCall, readHead, type SoapCallHead, type SoapVersion } from './request.ts';
import { jobIdOf, type SoapRequest } from './request-schema.ts';

export class SoapEndpoint {
  readonly #place: SandboxPlace;
  readonly #jobs: JobInformation;
  /** Users with a call in flight. */
  readonly #busy = new Set<SandboxUser>();

  constructor(place: SandboxPlace) {
    this.#place = place;
    this.#jobs = new JobInformation(place);
  }

  async handle(exchange: Exchange, service: ServiceName): Promise<void> {
    const { traffic, habits, namespace } = this.#place;
    const head = readHead(exchange.request.headers);
    const body = await readBody(exchange.request, habits.maxRequestBytes);
    traffic.begin();
    try {
      const request = readCall(body, head, { namespace, service });
      this.#accept(request, head, body.length);
      await this.#answer(exchange, request, head.version);
    } catch (thrown) {
      if (thrown instanceof HttpRefusal || exchange.signal.aborted || exchange.response.headersSent) throw thrown;
      traffic.faults += 1;
      const document = faultDocument(head.version, asFault(thrown));
      sendText(exchange.response, { status: 500, headers: headersOf(head.version), body: document });
    } finally {
      traffic.end();
    }
  }

  #accept(request: SoapRequest, { version }: SoapCallHead, requestBytes: number): void {
    const { traffic, habits, clock } = this.#place;
    traffic.record(request, { version, requestBytes, atMs: clock() });
    const limit = habits.maxPartsRequestBytes;
    const parts = request.operation === 'DownloadPartsOfJobFilesFromCluster';
    if (parts && limit !== null && requestBytes > limit) throw new HttpRefusal(413);
  }

  async #answer(exchange: Exchange, request: SoapRequest, version: SoapVersion): Promise<void> {
    const { habits, sessions, faults, traffic } = this.#place;
    const rules = faults.take(subjectOf(request));
    if (await spoil(exchange, rules)) return;
    const { sessionCode } = request.body;
    const user = sessions.userOf({ sessionCode, authorization: exchange.request.headers.authorization });
    if (habits.parallelUnsafe && this.#busy.has(user)) {
      throw new ServiceFault('The connection to the cluster is in use by another call.');
    }
    this.#busy.add(user);
    try {
      await delay(exchange, rules);
      const result = this.#run(request, user, rules);
      const answer = { status: 200, headers: headersOf(version), body: envelope(version, result) };
      traffic.bytesSent += await sendAnswer(exchange, answer, rules);
    } finally {
      this.#busy.delete(user);
    }
  }

  #run(request: SoapRequest, user: SandboxUser, rules: readonly FaultRule[]): AsyncIterable<string> {
    if (request.operation === 'ListJobsForCurrentUser') return this.#jobs.listJobs(user.username);
    const { submittedJobInfoId, sessionCode } = request.body;
    const job = this.#jobOf(submittedJobInfoId, user, sessionCode);
    if (request.operation === 'GetCurrentInfoForJob') return this.#jobs.getCurrentInfo(job);
    return runOperation(request, { job, rules }, this.#place);
  }

  #jobOf(jobId: string, user: SandboxUser, sessionCode: string | undefined): SubmittedJob {
    const { cluster, habits, sessions } = this.#place;
    const job = cluster.job(jobId);
    if (job === undefined) throw new ServiceFault(`Specified job with id ${jobId} does not exist.`);
    if (job.owner === user.username) return job;
    if (habits.foreignJob === 'session-lost') throw sessions.lost(sessionCode);
    throw new ServiceFault(`User ${user.username} may not use job ${jobId}.`);
  }
}

function headersOf(version: SoapVersion): Record<string, string> {
  return { 'cache-control': 'private, max-age=0', 'content-type': answerType(version) };
}

async function* envelope(version: SoapVersion, result: AsyncIterable<string>): AsyncGenerator<string> {
  const { before, after } = envelopeOf(version);
  yield before;
  yield* result;
  yield after;
}

/** Anything unexpected, as ASP.NET wraps it. */
function asFault(thrown: unknown): ServiceFault {
  if (thrown instanceof ServiceFault) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new ServiceFault(`Server was unable to process request. ---> ${text}`);
}

function subjectOf(request: SoapRequest): FaultSubject {
  const { operation, body } = request;
  const jobId = jobIdOf(request);
  const subject = { operation, ...(jobId !== undefined && { jobId }) };
  if (operation === 'DownloadFileFromCluster') return { ...subject, files: [{ file: body.relativeFilePath ?? '' }] };
  const files = entriesOf(request).flatMap((entry) => {
    const { submittedTaskInfoId: taskId, fileType } = entry ?? {};
    return taskId == null || fileType == null ? [] : [{ taskId, file: FILE_OF_TYPE[fileType] }];
  });
  return { ...subject, files };
}
