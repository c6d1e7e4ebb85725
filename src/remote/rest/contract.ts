/** The contract of the REST interface in all its releases (docs/dev/rest.md): members and numbers. */
import type { LiveFileName } from '../../job.ts';

/** The default path of the middleware below {base_url}. */
export const DEFAULT_PATH = '/heappe';

type Verb = 'GET' | 'POST';

/** By POST the arguments are the JSON body, by GET the query. */
export interface Address {
  readonly verb: Verb;
  readonly path: `${Controller}/${string}`;
}

type Controller = 'UserAndLimitationManagement' | 'FileTransfer' | 'JobManagement';

/** The sign-ins (docs/dev/rest.md 4.1), by the method of docs/dev/soap.md 5; all by POST. */
export const SIGN_IN_PATHS = {
  password: 'UserAndLimitationManagement/AuthenticateUserPassword',
  openid: 'UserAndLimitationManagement/AuthenticateUserOpenId',
  'external-token': 'UserAndLimitationManagement/AuthenticateLexisToken',
  'cloud-platform': 'UserAndLimitationManagement/AuthenticateUserOpenStack',
} as const satisfies Readonly<Record<string, Address['path']>>;

/** Members of requests (docs/dev/rest.md 1.3); the server ignores their case. */
export const REQUEST = {
  jobId: 'SubmittedJobInfoId',
  sessionCode: 'SessionCode',
  path: 'RelativeFilePath',
  offsets: 'TaskFileOffsets',
  taskId: 'SubmittedTaskInfoId',
  fileType: 'FileType',
  offset: 'Offset',
  /** EndFileTransfer: the whole object from GetFileTransferMethod. */
  usedMethod: 'UsedTransferMethod',
  publicKey: 'PublicKey',
} as const;

/** Members of the method and of its credentials (docs/dev/rest.md 3.7). */
export const TRANSFER_METHOD = {
  hostname: 'ServerHostname',
  basepath: 'SharedBasepath',
  protocol: 'Protocol',
  credentials: 'Credentials',
} as const;
export const CREDENTIALS = {
  username: 'Username',
  privateKey: 'PrivateKey',
  publicKey: 'PublicKey',
} as const;

export const FILE_TYPES: Readonly<Record<LiveFileName, number>> = { log: 0, progress: 1, stderr: 2, stdout: 3 };

/** The third one from V3.1 on. */
export const PROTOCOLS = { NetworkShare: 1, SftpScp: 2, LocalSftpScp: 4 } as const;

export const JOB_STATES = {
  Configuring: 1,
  Submitted: 2,
  Queued: 4,
  Running: 8,
  Finished: 16,
  Failed: 32,
  Canceled: 64,
  WaitingForServiceAccount: 128,
  Deleted: 256,
} as const;
