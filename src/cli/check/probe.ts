/**
 * `agent check --probe`: sends a REST server the requests of the recordings that change nothing, and reports responses
 * that no recorded server gave (docs/dev/rest.md 8). The report contains no secret, name or content.
 */

import type { Part, Remote, Session } from '../../agent/ports/server.ts';
import type { Config } from '../../config/config.ts';
import { connect, passingCapabilities, type Services, wayTo } from '../../daemon/connection.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../job.ts';
import { likelyPaths } from '../../live-paths.ts';
import { HttpClient } from '../../remote/http/http-client.ts';
import { REQUEST, SIGN_IN_PATHS } from '../../remote/rest/contract.ts';
import { commandLog } from '../process.ts';
import { answerOf, jsonOf } from './description.ts';

interface Question {
  /** As in the recordings of real servers. */
  readonly name: string;
  readonly path: string;
  readonly body?: string | Readonly<Record<string, unknown>>;
  readonly isSignedIn?: true;
  /** Status and kind of each recorded response. */
  readonly expected: readonly string[];
}

const UNKNOWN_SESSION = '11111111-2222-3333-4444-555555555555';
const PROBLEM = '{title,status,detail}';
const FRAMEWORK = '{type,title,status,errors,traceId}';
const NOT_HERE = ['404 page', '405 page', '500 nothing'];
const LOST = ['400 text', `401 ${PROBLEM}`];
const INVALID = ['400 text', `404 ${PROBLEM}`];
const PARTS = 'FileTransfer/DownloadPartsOfJobFilesFromCluster';
const LISTING = 'FileTransfer/ListChangedFilesForJob';
const JOB = 'JobManagement/CurrentInfoForJob';
const MISSING_JOB = 99_999_999;

const parts = (name: string, jobId: number, expected: readonly string[], session?: string): Question => ({
  ...{ name, path: PARTS, expected },
  body: {
    [REQUEST.jobId]: jobId,
    [REQUEST.offsets]: [],
    ...(session !== undefined && { [REQUEST.sessionCode]: session }),
  },
  ...(session === undefined && { isSignedIn: true as const }),
});

/** Requests in their order. No sign-in with a wrong password: that may lock an account. */
export const QUESTIONS: readonly Question[] = [
  { name: 'sign-in no json', path: SIGN_IN_PATHS.password, body: 'not json', expected: [`400 ${FRAMEWORK}`] },
  { name: 'sign-in by GET', path: SIGN_IN_PATHS.password, expected: ['405 page', '500 nothing'] },
  { name: 'unknown operation', path: 'FileTransfer/NotThere', body: {}, expected: ['404 page', '500 nothing'] },
  { name: 'unknown controller', path: 'Nothing/There', expected: ['404 page', '500 nothing'] },
  parts('parts unknown session', 1, LOST, UNKNOWN_SESSION),
  parts('parts malformed session', 1, [...LOST, ...INVALID], 'zzz'),
  parts('parts empty session', 1, [...LOST, ...INVALID], ''),
  {
    ...{ name: 'listing unknown session', path: `${LISTING}?SessionCode=${UNKNOWN_SESSION}&SubmittedJobInfoId=1` },
    expected: [...NOT_HERE, ...LOST],
  },
  { name: 'listing no session', path: `${LISTING}?SubmittedJobInfoId=1`, expected: [...NOT_HERE, ...LOST, ...INVALID] },
  { name: 'job by POST', path: JOB, body: {}, expected: NOT_HERE },
  parts('parts missing job', MISSING_JOB, INVALID),
  parts('parts job 0', 0, INVALID),
  {
    ...{ name: 'listing missing job', path: `${LISTING}?SubmittedJobInfoId=${MISSING_JOB}`, isSignedIn: true },
    expected: [...NOT_HERE, ...INVALID],
  },
  {
    ...{ name: 'job missing', path: `${JOB}?SubmittedJobInfoId=${MISSING_JOB}`, isSignedIn: true },
    expected: [...NOT_HERE, ...INVALID],
  },
];

/** A job that is asked for; its tasks come from the job service if none is named. */
export interface ProbedJob {
  readonly jobId: JobId;
  readonly taskIds: readonly TaskId[];
}

export async function probe(config: Config, signal: AbortSignal, job?: ProbedJob) {
  const { service } = config;
  if (service.protocol !== 'rest') {
    const hint = 'leave out --probe: agent check alone compares the description (WSDL) of SOAP';
    throw new JobtailError('config', '--probe asks servers that speak REST', { hint });
  }
  let isLimitReported = false;
  const connection = await connect(config, commandLog(), {
    capabilities: passingCapabilities(undefined),
    newClient: (options) =>
      new HttpClient({
        ...options,
        onAnswer(answer) {
          isLimitReported ||= answer.quota !== undefined;
          options.onAnswer?.(answer);
        },
      }),
  });
  try {
    const address = `${service.baseUrl}${service.path}`;
    const answers = await ask({ address, way: await wayTo(config) }, await codeOf(connection.session, signal), signal);
    const found = job && { job: await probeJob(connection, job, signal) };
    // Whether responses have the rest of a rate limit.
    return { ...answers, rateLimit: isLimitReported ? 'reported' : 'not reported', ...found };
  } finally {
    await connection.close();
  }
}

interface Asked {
  readonly address: string;
  readonly way: Awaited<ReturnType<typeof wayTo>>;
}

async function ask({ address, way }: Asked, session: string | undefined, signal: AbortSignal) {
  const unexpected: { question: string; answer: string | null; expected: readonly string[] }[] = [];
  const asked = QUESTIONS.filter(({ isSignedIn }) => isSignedIn !== true || session !== undefined);
  for (const { name, path, body, isSignedIn, expected } of asked) {
    const code = isSignedIn === true ? session : undefined;
    const url = `${address}/${path}`;
    const query = code !== undefined && body === undefined ? `&SessionCode=${encodeURIComponent(code)}` : '';
    const text =
      typeof body === 'object' ? JSON.stringify({ ...body, ...(code && { [REQUEST.sessionCode]: code }) }) : body;
    const sent = text === undefined ? way : { ...way, body: { contentType: 'application/json', text } };
    const found = await answerOf(`${url}${query}`, signal, sent);
    const answer = found === undefined ? null : signatureOf(found);
    if (answer === null || !expected.includes(answer)) unexpected.push({ question: name, answer, expected });
  }
  return { asked: asked.length, unexpected };
}

/** Undefined where calls carry no session code. */
async function codeOf(session: Session, signal: AbortSignal): Promise<string | undefined> {
  const grant = await session.current(signal);
  return grant.kind === 'session' ? grant.code : undefined;
}

const MAX_PROBED_BYTES = 1024 * 1024;
/** Bytes of a live file that are compared with its text. */
const COMPARED_BYTES = 64 * 1024;

/** What the mirrors of a job rely on. A failure stands there as its code. */
async function probeJob({ remote, jobService }: Services, { jobId, taskIds }: ProbedJob, signal: AbortSignal) {
  const reported = taskIds.length > 0 ? undefined : await jobService?.getJob(jobId, signal);
  const [taskId] = reported?.tasks.map(({ id }) => id) ?? taskIds;
  if (taskId === undefined) throw new JobtailError('config', `no task of job ${jobId} is known: name one by --task`);
  const wanted = LIVE_FILE_NAMES.map((file) => ({ taskId, file, offset: 0 }));
  const { parts } = await remote.readParts(jobId, wanted, signal);
  try {
    const [longest] = parts
      .filter(({ content }) => content.length > 0 && content.length <= MAX_PROBED_BYTES)
      .sort((a, b) => b.content.length - a.content.length);
    const raw = longest === undefined ? undefined : await rawOf(remote, jobId, longest, signal);
    return {
      // The raw download of a live file by its path, without the listing.
      rawByPath: raw === undefined ? 'no live file has a short text' : Buffer.isBuffer(raw) ? 'given' : raw,
      // Unknown if the file has ASCII characters only.
      decoder:
        longest && Buffer.isBuffer(raw) ? decoderOf(await longest.content.read(0, COMPARED_BYTES), raw) : 'unknown',
      // The transfer that is offered for the job, whose listing shows named pipes.
      transfer: await transferOf(remote, jobId, signal),
    };
  } finally {
    for (const { content } of parts) await content.release();
  }
}

/** The beginning of the raw file, or the code of the last failure. */
async function rawOf(remote: Remote, jobId: JobId, part: Part, signal: AbortSignal): Promise<Buffer | string> {
  let failure = 'no path is likely';
  for (const path of likelyPaths(part, undefined)) {
    const begin: Buffer[] = [];
    let length = 0;
    const sink = (bytes: Buffer) => {
      if (length < COMPARED_BYTES) begin.push(Buffer.from(bytes));
      length += bytes.length;
    };
    const error = await remote.downloadFile(jobId, path, sink, signal).then(() => undefined, asJobtailError);
    if (error === undefined) return Buffer.concat(begin);
    signal.throwIfAborted();
    failure = error.code;
  }
  return failure;
}

/** How many U+FFFD stand for undecodable bytes proves nothing. */
function decoderOf(text: Buffer, raw: Buffer): 'utf-8' | 'other' | 'unknown' {
  const decoded = (bytes: Buffer) =>
    bytes
      .toString('utf8')
      .replace(/^\uFEFF/, '')
      .replaceAll(/\uFFFD+/g, '\uFFFD');
  const [shown, known] = [decoded(text), decoded(raw)];
  // The last character may be cut.
  const compared = shown.slice(0, Math.min(shown.length, known.length) - 1);
  if (!known.startsWith(compared)) return 'other';
  return /[^\0-\x7F\uFFFD]/.test(compared) ? 'utf-8' : 'unknown';
}

async function transferOf(remote: Remote, jobId: JobId, signal: AbortSignal): Promise<string> {
  try {
    const method = await remote.getTransferMethod(jobId, signal);
    if (method === null) return 'none';
    await remote.endTransfer(jobId, method, signal);
    return method.protocol ?? 'unknown';
  } catch (thrown) {
    signal.throwIfAborted();
    return asJobtailError(thrown).code;
  }
}

/** Members of failures. Names of other members may be those of files or users. */
const MEMBERS: ReadonlySet<string> = new Set(['type', 'title', 'status', 'detail', 'errors', 'traceId', 'message']);

const MAX_MEMBERS = 40;

export function signatureOf({ status, text }: { readonly status: number; readonly text: string }): string {
  return `${status} ${kindOf(text)}`;
}

function kindOf(text: string): string {
  if (text === '') return 'nothing';
  const value = jsonOf(text);
  if (value === undefined) return 'page';
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'list';
  if (typeof value !== 'object' || value === null) return typeof value;
  const members = Object.keys(value).map((key) => (MEMBERS.has(key) ? key : 'other'));
  return `{${members.length > MAX_MEMBERS ? [...members.slice(0, MAX_MEMBERS), '...'] : members}}`;
}
