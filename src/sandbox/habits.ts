/**
 * What servers of this interface do differently from each other (docs/servers.md), as one plain object. The defaults
 * are the server that is most like the interface; a test or a person changes them while the sandbox runs.
 */
import { JobtailError } from '../errors.ts';
import type { CodePage } from './soap/decoding.ts';

export interface SandboxHabits {
  // Live files (docs/servers.md 1)
  /**
   * How the text of live files is made: independent UTF-8 blocks of 1,024 bytes; one decoder from the offset to the end,
   * which goes by a byte-order mark there; or one character a byte, by a code page.
   */
  decoding: 'utf-8-blocks' | 'utf-8-stream' | CodePage;
  /** A byte-order mark at the offset asked for vanishes, though the text is made in blocks. */
  swallowBom: boolean;
  /** Reads are cut short at irregular lengths, so that blocks are shorter than 1,024 bytes. */
  shortReads: boolean;
  /** The `offset` of an entry: the one asked for, xsi:nil, or 0. */
  offsetEcho: 'echo' | 'nil' | 'zero';
  /** The `relativePath` of an entry: from the task's directory, from the job's directory, or no value at all. */
  relativePath: 'task' | 'job' | 'none';
  /** The `content` of an entry without text: an empty element, or no value at all. */
  emptyContent: 'empty' | 'none';
  /** More entries than this in one DownloadParts call are a fault; null for no limit. */
  maxPartsEntries: number | null;

  // Listing and whole files (docs/servers.md 4)
  /** Names as listed: `/123/sub/file`, `123///sub/file`, `123/sub/file`. */
  listForm: 'leading-slash' | 'triple-slash' | 'bare';
  /** Names listed besides the real ones, exactly as written here, each with the text it downloads as. */
  extraFiles: Record<string, string>;
  /** DownloadFileFromCluster refuses names without exactly one leading slash. */
  oneLeadingSlash: boolean;
  /** DownloadFileFromCluster of a file that does not exist. */
  missingFile: 'fault' | 'nil';

  // XML (docs/servers.md 1.7, 2)
  /** Optional members without a value are written as xsi:nil instead of being left out. */
  nullMembers: boolean;
  /** Each array of an answer holds a nil entry besides the real ones. */
  nilEntries: boolean;

  // Sessions and sign-in (docs/servers.md 3)
  /** The path before the operation name of a sign-in. */
  signInPath: string;
  /** Other names for sign-in operations, by the name in docs/interface.md 4.2. */
  signInOperations: Record<string, string>;
  /** The shape of a successful answer. `header` is for token sign-ins only: calls then show the token. */
  signInAnswer: 'json-string' | 'plain-text' | 'object' | 'header';
  /** The member of the `object` answer that holds the session code. */
  sessionCodeField: string;
  /** The status of a refused sign-in. */
  signInRefused: 400 | 401;
  /** A session ends after so many minutes without a call. */
  sessionIdleMinutes: number;
  /** Signing in again while the session lasts gives the same code. */
  reuseSession: boolean;
  /** How a call with a session that is not valid is answered: a SOAP fault (HTTP 500), or a status with the text. */
  sessionLost: 'fault' | 400 | 401 | 403;
  /** The text of that answer; `{code}` stands for the session code. */
  sessionLostText: string;
  /** The job of another user: exactly like a lost session, or a fault of its own. */
  foreignJob: 'session-lost' | 'fault';

  // Transfer methods (docs/servers.md 5)
  /** The protocol of GetFileTransferMethod; `none` leaves the result out. */
  transferProtocol: 'SftpScp' | 'NetworkShare' | 'none';
  /** The host of the method, perhaps with a port. */
  serverHostname: string;
  /** The user name of the method's credentials; null for the user who runs the sandbox. */
  transferUsername: string | null;
  /** The directory that `sharedBasepath` shows in place of the directory of all jobs; null for the real one. */
  sharedRoot: string | null;
  /** The format of temporary private keys. */
  keyFormat: 'rsa-pem' | 'ec-pem' | 'ed25519-openssh';
  /** Key pairs a job can have. */
  maxKeys: number;
  /** What counts towards `maxKeys`: keys that are open, or all that the job ever had. */
  maxKeysCounts: 'open' | 'ever';
  /** A key ends by itself after so many hours. */
  keyLifetimeHours: number;

  // Load (docs/servers.md 6)
  /** Requests an hour and address; beyond: 429 with Retry-After. Null for no limit. */
  requestsPerHour: number | null;
  /** Bytes of a SOAP request; beyond: 413. */
  maxRequestBytes: number;
  /** Bytes of a DownloadParts request; null for `maxRequestBytes`. */
  maxPartsRequestBytes: number | null;
  /** Bytes of a sign-in request; beyond: 413. */
  maxSignInBytes: number;
  /** A call fails while another call of the same user runs. */
  parallelUnsafe: boolean;
}

/** The server that is most like the interface. */
export function defaultHabits(): SandboxHabits {
  return {
    decoding: 'utf-8-blocks',
    swallowBom: false,
    shortReads: false,
    offsetEcho: 'echo',
    relativePath: 'task',
    emptyContent: 'empty',
    maxPartsEntries: null,
    listForm: 'leading-slash',
    extraFiles: {},
    oneLeadingSlash: false,
    missingFile: 'fault',
    nullMembers: false,
    nilEntries: false,
    signInPath: '/service/UserAndLimitationManagement',
    signInOperations: {},
    signInAnswer: 'json-string',
    sessionCodeField: 'SessionCode',
    signInRefused: 401,
    sessionIdleMinutes: 15,
    reuseSession: true,
    sessionLost: 'fault',
    sessionLostText: 'Session code {code} is not valid',
    foreignJob: 'session-lost',
    transferProtocol: 'SftpScp',
    serverHostname: '127.0.0.1:22',
    transferUsername: null,
    sharedRoot: null,
    keyFormat: 'rsa-pem',
    maxKeys: 6,
    maxKeysCounts: 'open',
    keyLifetimeHours: 24,
    requestsPerHour: null,
    maxRequestBytes: 4 * 1024 * 1024,
    maxPartsRequestBytes: null,
    maxSignInBytes: 64 * 1024,
    parallelUnsafe: false,
  };
}

/** Changes habits in place. A name that is none is a `usage` error. */
export function changeHabits(habits: SandboxHabits, changes: Partial<SandboxHabits>): void {
  const unknown = Object.keys(changes).find((name) => !Object.hasOwn(habits, name));
  if (unknown !== undefined) throw new JobtailError('usage', `the sandbox has no habit "${unknown}"`);
  Object.assign(habits, changes);
}
