/**
 * `agent check --probe`: sends a REST server the requests of the recordings that change nothing, and reports responses
 * that no recorded server gave (docs/dev/rest.md 8). The report contains no secret, name or content.
 */
import { type Config, serviceAddress } from '../../config/config.ts';
import { connect, wayTo } from '../../daemon/connection.ts';
import { JobtailError } from '../../errors.ts';
import { REQUEST, SIGN_IN_PATHS } from '../../remote/rest/contract.ts';
import { commandLog } from '../process.ts';
import { answerOf, jsonOf } from './description.ts';

interface ProbeQuestion {
  /** As in the recordings of real servers. */
  readonly name: string;
  readonly path: string;
  /** Status and kind of each recorded response. */
  readonly expected: readonly string[];
  /** Sent by POST, an object as JSON. */
  readonly body?: string | Readonly<Record<string, unknown>> | undefined;
}

/** Stands for the session code: without one, its questions are left out. */
const OWN = '{session}';
const UNKNOWN = '11111111-2222-3333-4444-555555555555';
const PROBLEM = '{title,status,detail}';
const NO_OPERATION = ['404 page', '500 nothing'];
const NO_ROUTE = ['404 page', '405 page', '500 nothing'];
const LOST = ['400 text', `401 ${PROBLEM}`];
const INVALID = ['400 text', `404 ${PROBLEM}`];
const LISTING = 'FileTransfer/ListChangedFilesForJob?SubmittedJobInfoId=';
const JOB = 'JobManagement/CurrentInfoForJob';
const MISSING_JOB = 99_999_999;

function question(name: string, path: string, expected: readonly string[], body?: ProbeQuestion['body']) {
  return { name, path, expected, body };
}
function parts(name: string, jobId: number, session: string, expected: readonly string[]) {
  const body = { [REQUEST.jobId]: jobId, [REQUEST.offsets]: [], [REQUEST.sessionCode]: session };
  return question(name, 'FileTransfer/DownloadPartsOfJobFilesFromCluster', expected, body);
}

/** Requests in their order. No sign-in with a wrong password: that may lock an account. */
export const QUESTIONS: readonly ProbeQuestion[] = [
  question('sign-in no json', SIGN_IN_PATHS.password, ['400 {type,title,status,errors,traceId}'], 'not json'),
  question('sign-in by GET', SIGN_IN_PATHS.password, ['405 page', '500 nothing']),
  question('unknown operation', 'FileTransfer/NotThere', NO_OPERATION, {}),
  question('unknown controller', 'Nothing/There', NO_OPERATION),
  parts('parts unknown session', 1, UNKNOWN, LOST),
  parts('parts malformed session', 1, 'zzz', [...LOST, ...INVALID]),
  parts('parts empty session', 1, '', [...LOST, ...INVALID]),
  question('listing unknown session', `${LISTING}1&SessionCode=${UNKNOWN}`, [...NO_ROUTE, ...LOST]),
  question('listing no session', `${LISTING}1`, [...NO_ROUTE, ...LOST, ...INVALID]),
  question('job by POST', JOB, NO_ROUTE, {}),
  parts('parts missing job', MISSING_JOB, OWN, INVALID),
  parts('parts job 0', 0, OWN, INVALID),
  question('listing missing job', `${LISTING}${MISSING_JOB}&SessionCode=${OWN}`, [...NO_ROUTE, ...INVALID]),
  question('job missing', `${JOB}?SubmittedJobInfoId=${MISSING_JOB}&SessionCode=${OWN}`, [...NO_ROUTE, ...INVALID]),
];

export async function probe(config: Config, signal: AbortSignal) {
  const { service } = config;
  if (service.protocol !== 'rest') {
    const hint = 'leave out --probe: agent check alone compares the description (WSDL) of SOAP';
    throw new JobtailError('config', '--probe asks servers that speak REST', { hint });
  }
  const connection = await connect(config, commandLog());
  try {
    const grant = await connection.session.current(signal);
    // Without one, calls carry no session code.
    const session = grant.kind === 'session' ? grant.code : undefined;
    const asked = QUESTIONS.filter((one) => session !== undefined || !JSON.stringify(one).includes(OWN));
    const way = await wayTo(config);
    const unexpected: { question: string; answer: string | null; expected: readonly string[] }[] = [];
    for (const { name, path, body, expected } of asked) {
      const url = `${serviceAddress(service)}/${path.replace(OWN, encodeURIComponent(session ?? ''))}`;
      const text =
        typeof body === 'object' ? JSON.stringify(body, (_, value) => (value === OWN ? session : value)) : body;
      const sent = text === undefined ? {} : { body: { contentType: 'application/json', text } };
      const page = await answerOf(url, signal, { ...way, ...sent });
      const answer = page === undefined ? null : signatureOf(page);
      if (answer === null || !expected.includes(answer)) unexpected.push({ question: name, answer, expected });
    }
    return { asked: asked.length, unexpected };
  } finally {
    await connection.close();
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
