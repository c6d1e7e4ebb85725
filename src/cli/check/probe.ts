/**
 * `agent check --probe`: sends a REST server the requests of the recordings that change nothing, and reports responses
 * that no recorded server gave (docs/dev/rest.md 8). The report contains no secret, name or content.
 */

import type { Part, Remote } from '../../agent/ports/server.ts';
import type { Config } from '../../config/config.ts';
import { connect, passingCapabilities, type Services, wayTo } from '../../daemon/connection.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../job.ts';
import { likelyPaths } from '../../live-paths.ts';
import { HttpClient } from '../../remote/http/http-client.ts';
import { REQUEST, SIGN_IN_PATHS } from '../../remote/rest/contract.ts';
import { commandLog } from '../process.ts';
import { answerOf, jsonOf } from './description.ts';

interface ProbeQuestion {
  /** As in the recordings of real servers. */
  readonly name: string;
  readonly path: string;
  /** Status and kind of each recorded response. */
  readonly expected: readonly string[];
  readonly body?: string | Readonly<Record<string, unknown>> | undefined;
  readonly isSignedIn?: boolean;
}

const UNKNOWN_SESSION = '11111111-2222-3333-4444-555555555555';
const PROBLEM = '{title,status,detail}';
const NO_OPERATION = ['404 page', '500 nothing'];
const NO_ROUTE = ['404 page', '405 page', '500 nothing'];
const LOST = ['400 text', `401 ${PROBLEM}`];
const INVALID = ['400 text', `404 ${PROBLEM}`];
const LISTING = 'FileTransfer/ListChangedFilesForJob';
const JOB = 'JobManagement/CurrentInfoForJob';
const OF_MISSING_JOB = '?SubmittedJobInfoId=99999999';

const question = (
  name: string,
  path: string,
  expected: readonly string[],
  body?: ProbeQuestion['body'],
): ProbeQuestion => ({
  ...{ name, path, expected, body },
});
const parts = (name: string, jobId: number, expected: readonly string[], session?: string): ProbeQuestion => ({
  ...question(name, 'FileTransfer/DownloadPartsOfJobFilesFromCluster', expected, {
    ...{ [REQUEST.jobId]: jobId, [REQUEST.offsets]: [] },
    ...(session !== undefined && { [REQUEST.sessionCode]: session }),
  }),
  isSignedIn: session === undefined,
});
const signedIn = (name: string, path: string): ProbeQuestion => ({
  ...question(name, path, [...NO_ROUTE, ...INVALID]),
  isSignedIn: true,
});

/** Requests in their order. No sign-in with a wrong password: that may lock an account. */
export const QUESTIONS: readonly ProbeQuestion[] = [
  question('sign-in no json', SIGN_IN_PATHS.password, ['400 {type,title,status,errors,traceId}'], 'not json'),
  question('sign-in by GET', SIGN_IN_PATHS.password, ['405 page', '500 nothing']),
  question('unknown operation', 'FileTransfer/NotThere', NO_OPERATION, {}),
  question('unknown controller', 'Nothing/There', NO_OPERATION),
  parts('parts unknown session', 1, LOST, UNKNOWN_SESSION),
  parts('parts malformed session', 1, [...LOST, ...INVALID], 'zzz'),
  parts('parts empty session', 1, [...LOST, ...INVALID], ''),
  question('listing unknown session', `${LISTING}?SessionCode=${UNKNOWN_SESSION}&SubmittedJobInfoId=1`, [
    ...NO_ROUTE,
    ...LOST,
  ]),
  question('listing no session', `${LISTING}?SubmittedJobInfoId=1`, [...NO_ROUTE, ...LOST, ...INVALID]),
  question('job by POST', JOB, NO_ROUTE, {}),
  parts('parts missing job', 99_999_999, INVALID),
  parts('parts job 0', 0, INVALID),
  signedIn('listing missing job', `${LISTING}${OF_MISSING_JOB}`),
  signedIn('job missing', `${JOB}${OF_MISSING_JOB}`),
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
  const newClient = (options: ConstructorParameters<typeof HttpClient>[0]) => {
    const onAnswer: typeof options.onAnswer = (answer) => {
      isLimitReported ||= answer.quota !== undefined;
      options.onAnswer?.(answer);
    };
    return new HttpClient({ ...options, onAnswer });
  };
  const connection = await connect(config, commandLog(), { capabilities: passingCapabilities(undefined), newClient });
  try {
    const grant = await connection.session.current(signal);
    // Without one, calls carry no session code.
    const session = grant.kind === 'session' ? grant.code : undefined;
    const unexpected: { question: string; answer: string | null; expected: readonly string[] }[] = [];
    const asked = QUESTIONS.filter(({ isSignedIn }) => isSignedIn !== true || session !== undefined);
    for (const one of asked) {
      const answer = await answerTo(one, config, one.isSignedIn === true ? session : undefined, signal);
      if (answer === null || !one.expected.includes(answer))
        unexpected.push({ question: one.name, answer, expected: one.expected });
    }
    const found = job && { job: await probeJob(connection, job, signal) };
    // Whether responses have the rest of a rate limit.
    const rateLimit = isLimitReported ? 'reported' : 'not reported';
    return { asked: asked.length, unexpected, rateLimit, ...found };
  } finally {
    await connection.close();
  }
}

async function answerTo(
  { path, body }: ProbeQuestion,
  config: Config,
  session: string | undefined,
  signal: AbortSignal,
) {
  const { service } = config;
  const address = service.protocol === 'rest' ? `${service.baseUrl}${service.path}/${path}` : '';
  const query = session !== undefined && body === undefined ? `&SessionCode=${encodeURIComponent(session)}` : '';
  const coded = typeof body === 'object' && session !== undefined ? { ...body, [REQUEST.sessionCode]: session } : body;
  const text = typeof coded === 'object' ? JSON.stringify(coded) : coded;
  const sent = text === undefined ? {} : { body: { contentType: 'application/json', text } };
  const answer = await answerOf(`${address}${query}`, signal, { ...(await wayTo(config)), ...sent });
  return answer === undefined ? null : signatureOf(answer);
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
