/**
 * `agent check --probe`: sends a REST server the requests of the recordings that change nothing, and reports responses
 * that no recorded server gave (docs/dev/rest.md 8). The report contains no secret, name or content.
 */
import type { Config } from '../../config/config.ts';
import { connect, passingCapabilities, wayTo } from '../../daemon/connection.ts';
import { JobtailError } from '../../errors.ts';
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

function question(name: string, path: string, expected: readonly string[], body?: ProbeQuestion['body']) {
  return { name, path, expected, body };
}
const parts = (name: string, jobId: number, expected: readonly string[], session?: string): ProbeQuestion => ({
  ...question(name, 'FileTransfer/DownloadPartsOfJobFilesFromCluster', expected, {
    [REQUEST.jobId]: jobId,
    [REQUEST.offsets]: [],
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

export async function probe(config: Config, signal: AbortSignal) {
  const { service } = config;
  if (service.protocol !== 'rest') {
    const hint = 'leave out --probe: agent check alone compares the description (WSDL) of SOAP';
    throw new JobtailError('config', '--probe asks servers that speak REST', { hint });
  }
  let isLimitReported = false;
  const newClient = (options: ConstructorParameters<typeof HttpClient>[0]) => {
    const onResponse: typeof options.onResponse = (timing) => {
      isLimitReported ||= timing.quota !== undefined;
      options.onResponse?.(timing);
    };
    return new HttpClient({ ...options, onResponse });
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
    // Whether responses have the rest of a rate limit.
    return { asked: asked.length, unexpected, rateLimit: isLimitReported ? 'reported' : 'not reported' };
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
