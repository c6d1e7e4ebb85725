/** The addresses of both services: from an HTTP request to a call, and from its result or failure to an answer. */
import { SERVICES, type ServiceName, type SoapVersion, wsdlOf } from '../../src/remote/soap/contract.ts';
import { type ServedCall, serveCall } from '../call.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import { type Exchange, readBody, sendText } from '../exchange.ts';
import type { FaultRule, FaultSubject } from '../faults.ts';
import type { SandboxPlace } from '../place.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import type { SandboxUser } from '../signin/sessions.ts';
import { answerType, envelopeOf, faultDocument } from './answer.ts';
import { fileOfType } from './download-parts.ts';
import { getCurrentInfo, listJobs } from './job-information.ts';
import { runOperation } from './operations.ts';
import { readCall, type SoapRequest, versionOf } from './request.ts';

/** The service at a path, if the quirks have it there: each is at its own name below the address of the sandbox. */
export function serviceAt(pathname: string, { jobService }: SandboxPlace['habits']): ServiceName | undefined {
  const service = (Object.keys(SERVICES) as ServiceName[]).find((name) => pathname === `/${name}`);
  return service === 'JobManagementWs' && !jobService ? undefined : service;
}

const MAX_REQUEST_BYTES = 4 * 1024 * 1024;

/** A request to the address of a service: a call, or one for its WSDL. */
export async function handleSoap(
  exchange: Exchange,
  { service, url }: { readonly service: ServiceName; readonly url: URL },
  place: SandboxPlace,
): Promise<void> {
  const { request, response } = exchange;
  const { namespace } = place;
  if (request.method === 'GET' && url.search.toLowerCase() === '?wsdl') {
    const body = wsdlOf({ namespace, url: `${url.origin}/${service}`, service });
    sendText(response, { status: 200, headers: { 'content-type': 'text/xml; charset=utf-8' }, body });
    return;
  }
  if (request.method !== 'POST') throw new HttpRefusal(405, '', { allow: 'POST' });
  await handleCall(exchange, service, place);
}

async function handleCall(exchange: Exchange, service: ServiceName, place: SandboxPlace): Promise<void> {
  const { namespace } = place;
  const version = versionOf(exchange.request.headers);
  const body = await readBody(exchange.request, MAX_REQUEST_BYTES);
  try {
    const request = readCall(body, version, { namespace, service });
    accept(request, version, place);
    await serve(exchange, { request, version }, place);
  } catch (thrown) {
    if (thrown instanceof HttpRefusal || exchange.signal.aborted || exchange.response.headersSent) throw thrown;
    const document = faultDocument(version, asFault(thrown));
    sendText(exchange.response, { status: 500, headers: headersOf(version), body: document });
  }
}

function accept(request: SoapRequest, version: SoapVersion, { traffic, clock }: SandboxPlace): void {
  const { operation, jobId, entries, path } = request;
  const isParts = operation === 'DownloadPartsOfJobFilesFromCluster';
  const call = { operation, version, jobId, atMs: clock() };
  traffic.record({
    ...call,
    ...(isParts && { entries }),
    ...(operation === 'DownloadFileFromCluster' && { path }),
  });
}

function serve(
  exchange: Exchange,
  { request, version }: { readonly request: SoapRequest; readonly version: SoapVersion },
  place: SandboxPlace,
): Promise<void> {
  const { sessions } = place;
  const { sessionCode } = request;
  const { authorization } = exchange.request.headers;
  const call: ServedCall = {
    subject: subjectOf(request),
    type: answerType(version),
    user: () => {
      const user = sessions.userOf({ sessionCode, authorization });
      if (user === undefined) throw sessionLost(sessionCode);
      return user;
    },
    answer: (user, rules) => {
      const result = run(request, { user, rules }, place);
      return { status: 200, headers: headersOf(version), body: envelope(version, result) };
    },
  };
  return serveCall(exchange, call, place);
}

function run(
  request: SoapRequest,
  { user, rules }: { readonly user: SandboxUser; readonly rules: readonly FaultRule[] },
  place: SandboxPlace,
): AsyncIterable<string> {
  if (request.operation === 'ListJobsForCurrentUser') return listJobs(user.username, place);
  const { jobId = '', sessionCode } = request;
  const job = jobOf(jobId, { user, sessionCode }, place);
  if (request.operation === 'GetCurrentInfoForJob') return getCurrentInfo(job, place);
  return runOperation(request, { job, rules }, place);
}

function jobOf(
  jobId: string,
  { user, sessionCode }: { readonly user: SandboxUser; readonly sessionCode: string | undefined },
  { cluster }: SandboxPlace,
): SubmittedJob {
  const job = cluster.job(jobId);
  if (job === undefined) throw new ServiceFault(`Specified job with id ${jobId} does not exist.`);
  if (job.owner === user.username) return job;
  // A job of another user looks like a lost session (docs/dev/servers.md 3.3).
  throw sessionLost(sessionCode);
}

/** The answer to a session that is not valid. */
function sessionLost(sessionCode = ''): ServiceFault {
  return new ServiceFault(`Session code ${sessionCode} is not valid`);
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
  const { operation, jobId, path, entries } = request;
  const subject = { operation, ...(jobId !== undefined && { jobId }) };
  if (operation === 'DownloadFileFromCluster') return { ...subject, files: [{ file: path ?? '' }] };
  const files = entries.flatMap(({ submittedTaskInfoId: taskId, fileType }) => {
    const file = fileOfType(fileType);
    return taskId === null || file === undefined ? [] : [{ taskId, file }];
  });
  return { ...subject, files };
}
