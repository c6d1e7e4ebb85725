/**
 * `agent check --probe`: sends a REST server the requests of the recordings that change nothing, and reports responses
 * that no recorded server gave (docs/dev/rest.md 8). The report contains no secret, name or content.
 */
import type { Config } from '../../config/config.ts';
import { connect, passingCapabilities, wayTo } from '../../daemon/connection.ts';
import { JobtailError } from '../../errors.ts';
import { REQUEST, SIGN_IN_PATHS } from '../../remote/rest/contract.ts';
import { commandLog } from '../process.ts';
import { answerOf } from './description.ts';

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

interface Unexpected {
  readonly question: string;
  /** Null without a response. */
  readonly answer: string | null;
  readonly expected: readonly string[];
}

export interface ProbeReport {
  readonly asked: number;
  readonly unexpected: readonly Unexpected[];
}

export async function probe(config: Config, signal: AbortSignal): Promise<ProbeReport> {
  const { service } = config;
  if (service.protocol !== 'rest') {
    const hint = 'leave out --probe: agent check alone compares the description (WSDL) of SOAP';
    throw new JobtailError('config', '--probe asks servers that speak REST', { hint });
  }
  const session = await sessionOf(config, signal);
  const way = await wayTo(config);
  const unexpected: Unexpected[] = [];
  const asked = QUESTIONS.filter(({ isSignedIn }) => isSignedIn !== true || session !== undefined);
  for (const { name, path, body, isSignedIn, expected } of asked) {
    const code = isSignedIn === true ? session : undefined;
    const url = `${service.baseUrl}${service.path}/${path}`;
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
async function sessionOf(config: Config, signal: AbortSignal): Promise<string | undefined> {
  const connection = await connect(config, commandLog(), { capabilities: passingCapabilities(undefined) });
  try {
    const grant = await connection.session.current(signal);
    return grant.kind === 'session' ? grant.code : undefined;
  } finally {
    await connection.close();
  }
}

/** Members of failures. Names of other members may be those of files or users. */
const MEMBERS: ReadonlySet<string> = new Set(['type', 'title', 'status', 'detail', 'errors', 'traceId', 'message']);

const MAX_MEMBERS = 40;

/** The status of a response and the kind of its body. */
export function signatureOf({ status, text }: { readonly status: number; readonly text: string }): string {
  return `${status} ${kindOf(text)}`;
}

function kindOf(text: string): string {
  if (text === '') return 'nothing';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'page';
  }
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'list';
  if (typeof value !== 'object' || value === null) return typeof value;
  const members = Object.keys(value).map((key) => (MEMBERS.has(key) ? key : 'other'));
  return `{${members.length > MAX_MEMBERS ? [...members.slice(0, MAX_MEMBERS), '...'] : members}}`;
}
