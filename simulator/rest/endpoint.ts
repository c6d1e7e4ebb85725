/** REST as a release speaks it (docs/dev/rest.md): from an HTTP request to a call, and from its result or failure to an answer. */

import { API_KEY_HEADER } from '../../src/auth.ts';
import { DEFAULT_PATH } from '../../src/remote/rest/contract.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import { FILE_TYPE_OF } from '../../src/remote/soap/contract.ts';
import { serveCall } from '../call.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import { type Answer, type Exchange, sendAnswer, sendText } from '../exchange.ts';
import type { FaultRule, FaultSubject } from '../faults.ts';
import type { SandboxPlace } from '../place.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import { userWith } from '../signin/credentials.ts';
import type { SandboxUser } from '../signin/sessions.ts';
import { type Target, targetAt } from './addresses.ts';
import { Arguments } from './arguments.ts';
import { JSON_TYPE } from './call.ts';
import { healthAnswer, isHealth } from './health.ts';
import { currentInfo, jobsOf } from './jobs.ts';
import { jsonOf } from './json.ts';
import { maxBytesOf, type RestRequest, readRequest, runOperation } from './operations.ts';
import { AnsweredProblem, type Problem, problemOf, RestFailure } from './problems.ts';
import { releaseOf } from './releases.ts';
import { handleSignIn } from './sign-in.ts';
import { validate } from './validation.ts';

interface RestContext {
  readonly exchange: Exchange;
  readonly release: Release;
  readonly place: SandboxPlace;
}

/** Handles a request below the path of the middleware; `url` has the path from there on. */
export async function handleRest(exchange: Exchange, url: URL, place: SandboxPlace): Promise<void> {
  const { request, response } = exchange;
  const release = releaseOf(place.habits.release);
  const context = { exchange, release, place };
  try {
    const path = decodeURIComponent(url.pathname.slice(DEFAULT_PATH.length + 1));
    if (isHealth(request.method ?? '', path, release)) {
      await sendAnswer(exchange, healthAnswer(place), []);
      return;
    }
    const target = targetAt(request.method ?? '', path, release);
    if ('signIn' in target) await handleSignIn(exchange, target.signIn, release, place);
    else await serve(await readTarget(target, url, context), context);
  } catch (thrown) {
    if (thrown instanceof HttpRefusal || exchange.signal.aborted || response.headersSent) throw thrown;
    const { status, body } = problemFor(thrown, context);
    const headers = { 'content-type': JSON_TYPE };
    sendText(response, { status, headers, body: jsonOf(body) });
  }
}

async function readTarget(
  { operation, address }: Exclude<Target, { signIn: unknown }>,
  url: URL,
  { exchange, release, place }: RestContext,
): Promise<RestRequest> {
  const given =
    address.verb === 'GET'
      ? Arguments.ofQuery(url.searchParams)
      : await Arguments.ofBody(exchange.request, maxBytesOf(operation, release), release);
  const request = readRequest(operation, { address, given, release });
  record(request, place);
  return request;
}

function record(request: RestRequest, { traffic, clock }: SandboxPlace): void {
  const { operation, jobId, asked, name } = request;
  const entries = asked?.map(
    (part) =>
      part && {
        submittedTaskInfoId: part.taskId,
        fileType: part.file && FILE_TYPE_OF[part.file],
        offset: String(part.offset),
      },
  );
  const isParts = operation === 'DownloadPartsOfJobFilesFromCluster';
  traffic.record({
    operation,
    version: 'REST',
    jobId,
    atMs: clock(),
    ...(isParts && entries && { entries }),
    ...(name !== undefined && { path: name }),
  });
}

async function serve(request: RestRequest, context: RestContext): Promise<void> {
  const { exchange, place } = context;
  const call = {
    subject: subjectOf(request),
    type: JSON_TYPE,
    user: () => userOf(request, context),
    answer: (user: SandboxUser, rules: readonly FaultRule[]) => answer(request, { user, rules }, context),
  };
  await serveCall(exchange, call, place);
}

/**
 * By the session code; where the release takes them, by a token or a key in the header lines. What is wrong in the
 * request comes first, unless the release looks at the session before it.
 */
function userOf(request: RestRequest, { exchange, release, place }: RestContext): SandboxUser {
  if (!release.headers) validate(request, release);
  const { sessionCode } = request;
  const { authorization } = release.headers ? exchange.request.headers : { authorization: undefined };
  const apiKey = release.headers ? exchange.request.headers[API_KEY_HEADER] : undefined;
  if (typeof apiKey === 'string') {
    const [, username = '', secret = ''] = /^([^:]*):(.*)$/s.exec(apiKey) ?? [];
    const user = userWith({ username, secret, kind: 'password' }, place.users);
    if (user === undefined) throw new RestFailure('wrongKey', username);
    return user;
  }
  const user = place.sessions.userOf({ sessionCode, authorization });
  if (user === undefined) {
    const endedAtMs = place.sessions.endOf(sessionCode);
    if (endedAtMs === undefined) throw new RestFailure('sessionUnknown', sessionCode);
    throw new RestFailure('sessionExpired', sessionCode, new Date(endedAtMs).toISOString());
  }
  if (release.headers) validate(request, release);
  return user;
}

async function answer(
  request: RestRequest,
  { user, rules }: { readonly user: SandboxUser; readonly rules: readonly FaultRule[] },
  { release, place }: RestContext,
): Promise<Answer> {
  const { operation } = request;
  if (operation === 'ListJobsForCurrentUser') return jobsOf(user.username, release, place);
  const job = jobOf(request, user, place);
  if (operation === 'GetCurrentInfoForJob') return currentInfo(job, release, place);
  return runOperation(operation, request, { job, rules, release, place, user });
}

function jobOf({ operation, jobId = '' }: RestRequest, user: SandboxUser, { cluster }: SandboxPlace): SubmittedJob {
  const job = cluster.job(jobId);
  const unknown = operation === 'GetCurrentInfoForJob' ? 'noSuchJobInfo' : 'noSuchJob';
  if (job === undefined) throw new RestFailure(unknown, jobId);
  if (job.owner !== user.username) throw new RestFailure('foreignJob', user.username, jobId);
  return job;
}

/** Anything unexpected is a failure outside of the service. */
function problemFor(thrown: unknown, { release }: RestContext): Problem {
  if (thrown instanceof AnsweredProblem) return thrown.problem;
  if (thrown instanceof RestFailure) return problemOf(thrown, release);
  const text = thrown instanceof ServiceFault || thrown instanceof Error ? thrown.message : String(thrown);
  return problemOf(new RestFailure('external', text), release);
}

function subjectOf({ operation, jobId, asked, name }: RestRequest): FaultSubject {
  const files = (asked ?? []).flatMap((part) =>
    part?.taskId == null || part.file === null ? [] : [{ taskId: part.taskId, file: part.file }],
  );
  // A rule names a file as it is listed, whatever the release wants before that.
  const listed = name === undefined ? [] : [name, name.replace(`/${jobId}/`, '/')];
  const named = listed.map((file) => ({ file }));
  return { operation, ...(jobId !== undefined && { jobId }), files: [...files, ...named] };
}
