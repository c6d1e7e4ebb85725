/**
 * What differs between the releases of the REST interface, as one table: a row for each difference, with the release from
 * which on it is so, and the section of docs/dev/rest.md with the source of that. A new release is a name here, and a value
 * in each row that it changes. No operation returns the release: the agent reads what each row may be, and how a response
 * shows it (`sign`). The simulated cluster speaks one release; where docs/dev/rest.md is open, the table has what it does.
 */
import type { Operation } from '../../operations.ts';
import { type Problem, startOf } from '../problem.ts';
import type { Address } from './contract.ts';

/** The releases that differ, each with the version that it begins with. */
export const BEGINNINGS = {
  '2.0': '2.0.0',
  '2.1': '2.1.0',
  '2.2': '2.2.0',
  '3.0': '3.0.0',
  '3.1': '3.1.0',
  '4.0': '4.0.0',
  '4.1': '4.1.0',
  '4.2.0': '4.2.0',
  '4.2': '4.2.1',
  '4.3': '4.3.0',
  '5.0': '5.0.0',
  '6.0': '6.0.0',
  '6.1': '6.1.0',
  '6.2': '6.2.0',
  '6.3': '6.2.9',
  '6.4': '6.4.0',
  '6.5': '6.4.1',
} as const;
export type ReleaseName = keyof typeof BEGINNINGS;

/** In their order. */
export const RELEASE_NAMES = Object.keys(BEGINNINGS) as ReleaseName[];

/** Values by the release from which on they are so. */
type From<Value> = Readonly<Partial<Record<ReleaseName, Value>> & Record<'2.0', Value>>;

export interface Row<Value> {
  /** Of docs/dev/rest.md. */
  readonly section: string;
  readonly from: From<Value>;
}

const row = <const Value extends string | number | boolean | null | object>(
  section: string,
  from: From<Value>,
): Row<Value> => ({ section, from });

const post = (path: Address['path']): Address => ({ verb: 'POST', path });
const get = (path: Address['path']): Address => ({ verb: 'GET', path });
const byPost = (path: Address['path']) => row('1.2', { '2.0': [post(path)] });
/** An operation whose address changed from V4.0 to V4.2. */
const moved = (before: Address, now: Address, from: Partial<From<'now' | 'both'>>) =>
  row<readonly Address[]>('1.2', {
    '2.0': [before],
    ...Object.fromEntries(Object.entries(from).map(([name, which]) => [name, which === 'now' ? [now] : [before, now]])),
  });

const OPENED = { '4.0': 'now', '4.1': 'both', '4.2.0': 'now' } as const;
const READ = { '4.0': 'both', '4.2.0': 'now' } as const;
const LISTING = 'FileTransfer/ListChangedFilesForJob';
const JOBS = 'JobManagement/ListJobsForCurrentUser';
/** Where the public key alone ends a transfer. */
export const CLOSE_PATH = 'FileTransfer/CloseFileTransfer';

export const ADDRESSES: Readonly<Record<Operation, Row<readonly Address[]>>> = {
  GetFileTransferMethod: moved(
    post('FileTransfer/GetFileTransferMethod'),
    post('FileTransfer/RequestFileTransfer'),
    OPENED,
  ),
  EndFileTransfer: moved(post('FileTransfer/EndFileTransfer'), post(CLOSE_PATH), OPENED),
  DownloadPartsOfJobFilesFromCluster: byPost('FileTransfer/DownloadPartsOfJobFilesFromCluster'),
  ListChangedFilesForJob: moved(post(LISTING), get(LISTING), READ),
  DownloadFileFromCluster: byPost('FileTransfer/DownloadFileFromCluster'),
  GetCurrentInfoForJob: moved(post('JobManagement/GetCurrentInfoForJob'), get('JobManagement/CurrentInfoForJob'), READ),
  ListJobsForCurrentUser: moved(post(JOBS), get(JOBS), READ),
};

/** The name of a whole file in a request: as it is listed, or that below the job id. */
export type PathForm = 'listed' | 'below the job';

const EARLY_TASK =
  'Id Name State Priority AllocatedTime AllocatedCoreIds StartTime EndTime NodeType ErrorMessage CpuHyperThreading';

export const ROWS = {
  /** The response to an unknown path and to a wrong verb: a status page (404, 405), or 500 without a body. */
  unknownPath: row('1.1', { '2.0': 'page', '6.2': 'empty' }),

  /** Bytes of a body. */
  maxPasswordBytes: row<number>('2.1', { '2.0': 220, '2.1': 148 }),
  maxTokenBytes: row<number>('2.1', { '2.0': 15_000, '2.1': 2048, '4.2.0': 4096 }),
  maxPartsBytes: row<number>('2.1', { '2.0': 452, '2.1': 480 }),
  /** Of a listing, a job, a key. */
  maxReadBytes: row<number>('2.1', { '2.0': 80, '2.1': 98 }),
  maxJobsBytes: row<number>('2.1', { '2.0': 54, '2.1': 60 }),
  maxFileBytes: row<number>('2.1', { '2.0': 372, '2.1': 378, '4.3': 700 }),
  maxEndBytes: row<number>('2.1', { '2.0': 4600, '3.1': 4700 }),
  /** The response to a longer one: a status page (400), a status with a problem, or 413 without a body. */
  tooLong: row<'page' | 413 | 400 | 'empty'>('2.3', { '2.0': 'page', '4.0': 413, '4.3': 400, '6.2': 'empty' }),

  /** How the text of live files is made. */
  decoder: row('3.2', { '2.0': 'blocks', '6.4': 'stream' }),
  /** `{spec}/{sub}//{path}`, `/{spec}/{path}`, `/{spec}/{sub}/{path}`. */
  names: row('3.4', { '2.0': 'slashes', '2.2': 'no-subdirectory', '4.3': 'whole' }),
  /** Whether the name of a whole file begins with a slash. */
  slash: row('3.4', { '2.0': 'needed', '4.3': 'optional' }),
  /** The forms of that name; of both, the second one where the specification has not the id of a task. */
  pathForms: row<readonly PathForm[]>('3.4', {
    '2.0': ['listed'],
    '4.0': ['below the job'],
    '4.1': ['listed'],
    '4.3': ['listed', 'below the job'],
    '6.2': ['listed'],
  }),
  /** A longer name, and one with other characters, is an invalid request. */
  maxNameLength: row<number>('3.4', { '2.0': 255, '2.1': 50, '4.3': 255 }),
  nameCharacters: row('3.4', { '2.0': /^/, '2.1': /^[A-Za-z0-9_\-./\\ ~]*$/u }),

  /** Members in their order. */
  jobMembers: row('3.6', {
    '2.0': 'Id Name State Project CreationTime SubmitTime StartTime EndTime TotalAllocatedTime Tasks',
    '4.0': 'Id Name State CreationTime SubmitTime StartTime EndTime TotalAllocatedTime Tasks',
    '4.3': 'Id Name State CreationTime SubmitTime StartTime EndTime TotalAllocatedTime SubProject Tasks',
  }),
  taskMembers: row<string>('3.6', { '2.0': EARLY_TASK, '6.0': `${EARLY_TASK} Reason` }),
  /** The end of what runs. */
  noEnd: row('3.6', { '2.0': '0001-01-01T00:00:00', '2.1': null }),
  /** Members of a key, and of its credentials. A port that has no member stands in the hostname. */
  methodMembers: row('3.7', {
    '2.0': 'ServerHostname SharedBasepath Protocol Credentials',
    '3.1': 'ServerHostname SharedBasepath Protocol ProxyConnection FileTransferCipherType Credentials',
    '4.1': 'ServerHostname SharedBasepath Protocol ProxyConnection Credentials',
    '4.2.0': 'ServerHostname SharedBasepath Protocol Port ProxyConnection Credentials',
    '5.0': 'Id ServerHostname SharedBasepath Protocol Port ProxyConnection Credentials',
  }),
  credentialsMembers: row('3.7', {
    '2.0': 'PrivateKey PublicKey Username',
    '4.1': 'Password CipherType PrivateKey PublicKey Passphrase Username',
    '4.3': 'Password CipherType CredentialsAuthType PrivateKey PrivateKeyCertificate PublicKey Passphrase Username',
  }),
  /** Of private keys. */
  keyFormat: row('3.7', { '2.0': 'rsa-pem', '6.0': 'ed25519-openssh' }),
  /** The keys that count towards the number of a job. */
  keysCount: row('3.7', { '2.0': 'open', '5.0': 'ever', '6.4': 'open' }),

  /** `Health` is there. */
  health: row<boolean>('4.1', { '2.0': false, '6.0': true }),
  /** AuthenticateLexisToken is there. */
  lexisToken: row<boolean>('4.1', { '2.0': false, '4.2.0': true }),
  /** `Authorization: Bearer` and `X-API-Key` in place of a session code. */
  headers: row<boolean>('4.1', { '2.0': false, '6.2': true }),
  /** The body of a failure: a string, a problem with the text in its title, or with a detail. */
  problem: row('4.2', { '2.0': 'string', '4.0': 'title', '4.2.0': 'detail' }),
  /** Which arguments are validated before anything is looked up. */
  validates: row('4.3', { '2.0': 'none', '2.1': 'bodies', '5.0': 'all' }),
  /** Calls of one user at a time: some releases share one connection among them. */
  callsAtATime: row<number>('4.5', { '2.0': Number.POSITIVE_INFINITY, '6.2': 1, '6.5': Number.POSITIVE_INFINITY }),
};

/** What a release does. */
export type Release = { readonly name: ReleaseName } & {
  readonly [Name in keyof typeof ROWS]: (typeof ROWS)[Name] extends Row<infer Value> ? Value : never;
};

export interface Wording {
  readonly status: number;
  /** Of a problem with a detail; the other releases have none. */
  readonly title: string;
  /** `{0}` and `{1}` stand for what the failure names. */
  readonly text: string;
}

const wording = (status: number, title: string, text: string): Wording => ({ status, title, text });
const early = (text: string) => wording(400, '', text);
const titled = (text: string) => wording(500, '', text);

const EARLY_UNEXPECTED = early(
  "Exception of type 'HEAppE.BusinessLogicTier.Logic.UserAndLimitationManagement.Exceptions.InternalMiddlewareException' was thrown.",
);
const UNEXPECTED = wording(500, 'Problem', 'Problem occured! Contact the administrators.');
const UNEXPECTED_EVER: From<Wording> = {
  '2.0': EARLY_UNEXPECTED,
  '4.0': titled(EARLY_UNEXPECTED.text),
  '4.2.0': UNEXPECTED,
};

const NOT_PRESENT = "Session code '{0}' is not present in the HEAppE.";
const EXPIRED = "Session code '{0}' already expired at '{1}'.";
const SESSION_TITLE = 'Session Code Authentication Problem';
const UNAUTHORIZED = wording(401, 'Unauthorized Access', 'Unauthorized');
const WRONG_SECRET = "Authentication of user '{0}' was not successful.";
const WRONG_SECRET_EVER: From<Wording> = {
  '2.0': early('Authentication of user {0} was not successful due to wrong credentials.'),
  '3.1': early('Authentication of user "{0}" was not successful due to wrong credentials.'),
  '4.0': titled('Authentication of user "{0}" was not successful due to wrong credentials.'),
  '4.2.0': wording(500, 'External Problem', WRONG_SECRET),
  '6.3': wording(502, 'External Service Error', WRONG_SECRET),
  '6.4': wording(401, 'Authentication Failed', WRONG_SECRET),
};
const NO_JOB_STRINGS = {
  '2.0': early('Requested job info with Id={0} does not exist in the system.'),
  '3.1': early('Requested job info with Id: "{0}" does not exist in the system.'),
  '4.0': titled('Requested job info with Id: "{0}" does not exist in the system.'),
} as const;
const FOREIGN = "Logged user '{0}' is not authorized to query job info '{1}'.";
/** In the words of every release, and of SOAP, for a job or a file. */
const NOT_THERE = /\b(?:not found|not exist|no such)\b/i;
const PATH = "Requested path '{0}' was not found. Exception message: '{1}'.";
const NO_FILE_EVER: From<Wording> = { ...UNEXPECTED_EVER, '5.0': wording(400, 'Invalid Request', PATH) };

/** A failure: its words, and the sign by which the agent recognizes it, also in those of a release that is not known. */
interface Failure extends Row<Wording> {
  readonly sign: RegExp;
}

const failure = (section: string, from: From<Wording>, sign = /(?!)/): Failure => ({ section, from, sign });

const SESSION = String.raw`\b(?:session ?code|access token|bearer token)\b[\s\S]{0,200}?\b`;

/** Seen are 2.0, 3.1, 4.3, 5.0 and 6.3; the others were read. */
export const FAILURES = {
  /** {0}: the code. */
  sessionUnknown: failure(
    '4.3',
    {
      '2.0': early('Session code {0} is not valid. Please go through the authentication process.'),
      '4.0': titled('Session code "{0}" is not present in the database.'),
      '4.2.0': wording(500, 'External Problem', NOT_PRESENT),
      '4.2': wording(401, SESSION_TITLE, NOT_PRESENT),
      '6.2': UNAUTHORIZED,
      '6.4': wording(401, SESSION_TITLE, NOT_PRESENT),
    },
    new RegExp(`${SESSION}(?:not valid|invalid|not present)\\b`, 'i'),
  ),
  /** {0}: the code. {1}: when. */
  sessionExpired: failure(
    '4.3',
    {
      '2.0': early('Session code {0} already expired. Please repeat the authentication process.'),
      '4.0': titled('Session code "{0}" already expired at "{1}".'),
      '4.2.0': wording(500, 'External Problem', EXPIRED),
      '4.2': wording(401, SESSION_TITLE, EXPIRED),
    },
    new RegExp(`${SESSION}expired\\b`, 'i'),
  ),
  /** {0}: the user. */
  wrongSecret: failure(
    '4.3',
    WRONG_SECRET_EVER,
    /\b(?:wrong|invalid|incorrect|bad)\b.{0,40}\b(?:password|credentials?|token|user ?name)\b|\bnot successful\b/i,
  ),
  /** Only with a key: an unknown session has the same words. {0}: the user. */
  wrongKey: failure(
    '4.1',
    { ...WRONG_SECRET_EVER, '6.2': UNAUTHORIZED, '6.3': UNAUTHORIZED },
    /^unauthorized access unauthorized$|\bauthentication of user\b[\s\S]{0,200}\bnot successful\b/i,
  ),
  unknownUser: failure('4.3', {
    ...WRONG_SECRET_EVER,
    '3.1': early('Authentication of user {0} was not successful due to wrong credentials.'),
    '4.2.0': UNEXPECTED,
    '5.0': wording(500, 'External Problem', WRONG_SECRET),
  }),
  /** {0}: the text of the validators. */
  invalid: failure(
    '4.3',
    {
      '2.0': early('{0}'),
      '4.0': titled('{0}'),
      '4.2.0': wording(404, 'Validation Problem', '{0}'),
      '6.4': wording(400, 'Invalid Request', '{0}'),
    },
    /\b(?:not valid|invalid|illegal|validation|RelativeFilePath|longer|length)\b/i,
  ),
  /** {0}: the longest. By ASP.NET itself, the same in all releases. */
  tooLongName: failure(
    '3.4',
    { '2.0': early('The field RelativeFilePath must be a string with a maximum length of {0}.') },
    /\b(?:longer|length)\b/i,
  ),
  nullList: failure('4.3', {
    ...UNEXPECTED_EVER,
    '2.1': early('Object reference not set to an instance of an object.'),
  }),
  /** {0}: the job. */
  noSuchJob: failure(
    '4.3',
    { ...NO_JOB_STRINGS, '4.2.0': wording(404, 'Validation Problem', "SubmittedJobInfoId '{0}' was not found.") },
    NOT_THERE,
  ),
  noSuchJobInfo: failure(
    '4.3',
    { ...NO_JOB_STRINGS, '4.2.0': wording(404, 'Validation Problem', "Job '{0}' does not exist in the HEAppE.") },
    NOT_THERE,
  ),
  /** {0}: the user. {1}: the job. */
  foreignJob: failure(
    '4.3',
    {
      '2.0': early('Logged user {0} is not authorized to work with job info with ID {1}'),
      '3.1': early('Logged user: "{0}" is not authorized to work with job info with id: "{1}"'),
      '4.0': titled('Logged user: "{0}" is not authorized to work with job info with id: "{1}"'),
      '4.2.0': wording(500, 'External Problem', FOREIGN),
      '6.2': wording(401, SESSION_TITLE, FOREIGN),
      '6.4': wording(403, 'Access Forbidden', FOREIGN),
    },
    /\bnot authorized to (?:query|work with) job info\b|nemá povolení pracovat s jobem/i,
  ),
  /** {0}: the name. {1}: the text of the SFTP server. */
  noSuchFile: failure(
    '3.5',
    {
      ...UNEXPECTED_EVER,
      '3.1': early('{1}'),
      '4.0': titled('{1}'),
      '4.2.0': wording(500, 'External Problem', PATH),
      '5.0': wording(400, 'Invalid Request', PATH),
    },
    /(?:^|: '?)No such file\. Path: '.*'\.(?:'\.)?$/s,
  ),
  unreadableFile: failure('3.5', NO_FILE_EVER, /Exception message: 'Permission denied'\.$/),
  /** The sign: SSH_FX_FAILURE, by which sftp-server reports errors of the disk, too. */
  directory: failure('3.5', NO_FILE_EVER, /Exception message: 'Failure'\.$/),
  emptyPath: failure('3.5', { ...UNEXPECTED_EVER, '6.3': wording(502, 'SSH Problem', 'Failure') }),
  unexpected: failure('4.3', UNEXPECTED_EVER, /^\s*problem occur?red\b/i),
  /** {0}: what fails outside of the service. The sign: a refusal of one request, with the status of a proxy. */
  external: failure(
    '4.3',
    {
      '2.0': early('{0}'),
      '4.0': titled('{0}'),
      '4.2.0': wording(500, 'External Problem', '{0}'),
      '6.3': wording(502, 'External Service Error', '{0}'),
    },
    /^External Service Error|^SSH Problem (?:No such file|Permission denied$)/,
  ),
} as const satisfies Readonly<Record<string, Failure>>;

/** Failures that the releases answer differently. */
export type FailureKind = keyof typeof FAILURES;

/** Titles of a failed sign-in, with the status of a fault; "Problem" alone is any fault. */
export const REFUSED_SIGN_IN_TITLE = /^External (?:Service Error|Problem)$|\bauthentication\b/i;

/** All that a row may be, the earliest first. */
export const valuesOf = <Value>({ from }: Row<Value>): Value[] => [...new Set(Object.values(from) as Value[])];

/** All addresses that an operation may have, the latest first. */
export function addressesOf(operation: Operation): Address[] {
  return [...new Set(valuesOf(ADDRESSES[operation]).flat())].reverse();
}

/** Whether a response shows that the operation or its verb is not at this address (`unknownPath`). */
export function isUnknownPath(status: number, { words, isOwn, isPage }: Problem): boolean {
  return status === 405 || (status === 404 && !isOwn) || (status === 500 && words === '' && !isPage);
}

const TOO_LONG_TEXT = /\b(?:request|body|content)\b.{0,40}\b(?:too (?:large|long|big)|exceeds?)\b|^Status Code: 400\b/i;

/** Whether a response shows that the request is too long (`tooLong`). */
export function isTooLong(status: number, problem: Problem): boolean {
  return status === 413 || status === 414 || (status === 400 && TOO_LONG_TEXT.test(startOf(problem)));
}
