/**
 * What servers of this interface do differently from each other (docs/dev/servers.md), as one plain object. The defaults
 * are the server that is most like the interface; a test or a person changes them while the sandbox runs. What comes
 * with the releases of the REST interface is `release`, a row of rest/releases.ts.
 */
import { JobtailError } from '../src/errors.ts';
import { DEFAULT_PATH } from '../src/remote/rest/contract.ts';
import type { KeyFormat } from './cluster/key-pair.ts';
import type { Language } from './rest/failures.ts';
import { checkRelease, type Release, type ReleaseName } from './rest/releases.ts';

export type SandboxHabits = ReturnType<typeof defaultHabits>;

/** The server that is most like the interface. */
export function defaultHabits() {
  return {
    // Live files (docs/dev/servers.md 1)
    /**
     * How the text of live files is made: independent UTF-8 blocks of 1,024 bytes; one decoder from the offset to the
     * end, which goes by a byte-order mark there; the blocks of the older .NET runtime; or otherwise: one character a byte.
     */
    decoding: 'utf-8-blocks' as 'utf-8-blocks' | 'utf-8-stream' | 'utf-8-blocks-older' | 'latin-1',
    /** A byte-order mark at the requested offset vanishes, though the text is made in blocks. */
    swallowBom: false,
    /** Reads are cut short at irregular lengths, so that blocks are shorter than 1,024 bytes. */
    shortReads: false,
    /** The `offset` of an entry: the requested one, xsi:nil, or 0. */
    offsetEcho: 'echo' as 'echo' | 'nil' | 'zero',
    /** The `relativePath` of an entry: from the task's directory, from the job's directory, or no value at all. */
    relativePath: 'task' as 'task' | 'job' | 'none',
    /** The `content` of an entry without text: an empty element, or no value at all. */
    emptyContent: 'empty' as 'empty' | 'none',
    /** More entries than this in one DownloadParts call are a fault; null for no limit. */
    maxPartsEntries: null as number | null,
    /** A task of a DownloadParts call that is none of the job. */
    unknownTask: 'left-out' as 'left-out' | 'fault',

    // Listing and whole files (docs/dev/servers.md 4)
    /** Names as listed: `/123/sub/file`, `123///sub/file`, `123/sub/file`. */
    listForm: 'leading-slash' as 'leading-slash' | 'triple-slash' | 'bare',
    /** Names listed besides the real ones, exactly as written here, each with the text it downloads as. */
    extraFiles: {} as Record<string, string>,
    /** DownloadFileFromCluster refuses names without exactly one leading slash. */
    oneLeadingSlash: false,
    /** DownloadFileFromCluster of a file that does not exist. */
    missingFile: 'fault' as 'fault' | 'nil',

    // Jobs and tasks (docs/dev/servers.md 10)
    /** JobManagementWs is there. */
    jobService: true,
    /**
     * The id of a new task's specification: the next free number, any number, or the task's id and so much; 0 for the
     * same.
     */
    specificationIds: 'next' as 'next' | 'irregular' | number,
    /**
     * Times of jobs; `usual` is `utc` over SOAP, and over REST what its releases write: no zone, up to seven digits.
     */
    jobTimes: 'usual' as 'usual' | 'utc' | 'no-zone' | 'offset',
    /** Seconds after which the cluster is queried again for reports about jobs; 0 for each time. */
    stateSeconds: 0,
    /** So long after the end of a task the last bytes of its files are flushed; 0 for at once, always. */
    flushSeconds: 0,

    // REST (docs/dev/rest.md)
    /** The release of REST; SOAP has none. */
    release: '6.3' as ReleaseName,
    /** What is different from that release. */
    releaseHabits: {} as Partial<Release>,
    /** The path before the controllers. */
    restPath: DEFAULT_PATH as string,
    /** Members of answers begin with a capital letter or a small one. */
    memberCase: 'pascal' as 'pascal' | 'camel',
    /** Whatever is not ASCII, and some of what is, is escaped in JSON; in base64 that is the plus. */
    escapesAll: false,
    escapesBase64: false,
    /** The language of problems without `Accept-Language`. */
    language: 'cs' as Language,
    /**
     * Characters of the longest text value that the service can write: longer parts are a failure (docs/dev/rest.md 3.1).
     */
    maxTextCharacters: 166_666_666,
    /**
     * A whole file begins so many milliseconds late for each MiB of it, for it is read whole before (docs/dev/rest.md 3.5).
     */
    firstByteMsPerMiB: 0,
    /**
     * Times of files count in whole seconds when the listing leaves out what is older than the submission: true for
     * what real servers do, which never list a file of the very second of the submission (docs/dev/rest.md 5.1).
     */
    wholeSecondListing: false,
    /** Listed names are absolute paths. */
    absolutePaths: false,

    // Clusters (docs/dev/rest.md 5.2)
    /** How the service reaches the files of jobs, over REST. */
    fileAccess: 'ssh' as 'ssh' | 'network-share' | 'firecrest',

    // XML (docs/dev/servers.md 1.7, 2)
    /** Optional members without a value are written as xsi:nil instead of being left out. */
    nullMembers: false,
    /** Each array of an answer holds a nil entry besides the real ones. */
    nilEntries: false,

    // Sessions and sign-in (docs/dev/servers.md 3)
    /** The path before the operation name of a sign-in. */
    signInPath: '/service/UserAndLimitationManagement',
    /** Other names for sign-in operations, by the name in docs/dev/soap.md 4.2. */
    signInOperations: {} as Record<string, string>,
    /** The shape of a successful answer. `header` is for token sign-ins only: calls then show the token. */
    signInAnswer: 'json-string' as 'json-string' | 'plain-text' | 'object' | 'header',
    /** The member of the `object` answer that holds the session code. */
    sessionCodeField: 'SessionCode',
    /** The status of a refused sign-in. */
    signInRefused: 401 as 400 | 401,
    /** A session ends after so many minutes without a call. */
    sessionIdleMinutes: 15,
    /** Signing in again while the session lasts gives the same code. */
    reuseSession: true,
    /** How a call with a session that is not valid is answered: a SOAP fault (HTTP 500), or a status with the text. */
    sessionLost: 'fault' as 'fault' | 400 | 401 | 403,
    /** The text of that answer; `{code}` stands for the session code. */
    sessionLostText: 'Session code {code} is not valid',
    /** The job of another user: exactly like a lost session, or a fault of its own. */
    foreignJob: 'session-lost' as 'session-lost' | 'fault',

    // Transfer methods (docs/dev/servers.md 5)
    /** The protocol of GetFileTransferMethod; `none` leaves the result out. */
    transferProtocol: 'SftpScp' as 'SftpScp' | 'NetworkShare' | 'none',
    /** SftpScp is called LocalSftpScp by the REST releases that have it. */
    localTransfer: false,
    /** The host of the method, perhaps with a port. */
    serverHostname: '127.0.0.1:22',
    /** The user name of the method's credentials; null for the user who runs the sandbox. */
    transferUsername: null as string | null,
    /** The directory that `sharedBasepath` shows in place of the directory of all jobs; null for the real one. */
    sharedRoot: null as string | null,
    /** The format of temporary private keys; `usual` is `rsa-pem` over SOAP, and that of the release over REST. */
    keyFormat: 'usual' as 'usual' | KeyFormat,
    /** The encryption of private keys in PEM; null for none. Only REST reports it. */
    keyPassphrase: null as string | null,
    /** Every key is the real one of the account: it is not counted, and does not end. */
    accountKeys: false,
    /** Key pairs a job can have. */
    maxKeys: 6,
    /**
     * What counts towards `maxKeys`: keys that are open, or all that the job ever had, as some REST releases have it.
     */
    maxKeysCounts: 'open' as 'open' | 'ever',
    /** A key ends by itself after so many hours. */
    keyLifetimeHours: 24,

    // Load (docs/dev/servers.md 6)
    /** Requests an hour and address; beyond: 429 with Retry-After. Null for no limit, or that of the REST release. */
    requestsPerHour: null as number | 'release' | null,
    /** Bytes of a SOAP request; beyond: 413. */
    maxRequestBytes: 4 * 1024 * 1024,
    /** Bytes of a DownloadParts request; null for `maxRequestBytes`. */
    maxPartsRequestBytes: null as number | null,
    /** Bytes of a sign-in request; beyond: 413. */
    maxSignInBytes: 64 * 1024,
    /** A call fails while another call of the same user runs; or, over REST, as its release has it. */
    parallelUnsafe: false as boolean | 'release',
  };
}

/** Changes quirks in place. An unknown name is a `usage` error. */
export function changeHabits(habits: SandboxHabits, changes: Partial<SandboxHabits>): void {
  const { release = habits.release, releaseHabits = habits.releaseHabits } = changes;
  checkRelease(release, releaseHabits);
  const unknown = Object.keys(changes).find((name) => !Object.hasOwn(habits, name));
  if (unknown !== undefined) throw new JobtailError('usage', `the sandbox has no quirk "${unknown}"`);
  Object.assign(habits, changes);
}
