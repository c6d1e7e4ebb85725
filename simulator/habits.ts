/**
 * What servers of this interface do differently from each other (docs/dev/servers.md), as one plain object. The defaults
 * are the server that is most like the interface; a test or a person changes them while the sandbox runs. What comes
 * with the releases of the REST interface is `release`, a name of src/remote/rest/releases.ts.
 */
import { JobtailError } from '../src/errors.ts';
import type { ReleaseName } from '../src/remote/rest/releases.ts';
import type { KeyFormat } from './cluster/key-pair.ts';
import { checkRelease } from './rest/releases.ts';

export type SandboxHabits = ReturnType<typeof defaultHabits>;

/** The server that is most like the interface. */
export function defaultHabits() {
  return {
    // Live files (docs/dev/servers.md 1)
    /** The `offset` of an entry: the requested one, xsi:nil, or 0. */
    offsetEcho: 'echo' as 'echo' | 'nil' | 'zero',
    /** The `relativePath` of an entry: from the task's directory, or no value at all. */
    relativePath: 'task' as 'task' | 'none',
    /** The `content` of an entry without text: an empty element, or no value at all. */
    emptyContent: 'empty' as 'empty' | 'none',

    // Listing and whole files (docs/dev/servers.md 4)
    /** Names as listed: `/123/sub/file`, `123/sub/file`. */
    listForm: 'leading-slash' as 'leading-slash' | 'bare',
    /** Names listed besides the real ones, exactly as written here, each with the text it downloads as. */
    extraFiles: {} as Record<string, string>,
    /** DownloadFileFromCluster of a file that does not exist. */
    missingFile: 'fault' as 'fault' | 'nil',

    // Jobs and tasks (docs/dev/servers.md 10)
    /** JobManagementWs is there. */
    jobService: true,
    /** The id of a new task's specification: the next free number, any number, or that of the task. */
    specificationIds: 'next' as 'next' | 'irregular' | 'task',

    // REST (docs/dev/rest.md)
    /** The release of REST; SOAP has none. */
    release: '6.3' as ReleaseName,

    // XML (docs/dev/servers.md 1.7, 2)
    /** Optional members without a value are written as xsi:nil instead of being left out. */
    nullMembers: false,
    /** Each array of an answer holds a nil entry besides the real ones. */
    nilEntries: false,

    // Sessions and sign-in (docs/dev/servers.md 3)
    /** The session code as a JSON string; or `header`, for token sign-ins only: calls then show the token. */
    signInAnswer: 'json-string' as 'json-string' | 'header',

    // Transfer methods (docs/dev/servers.md 5)
    /** The protocol of GetFileTransferMethod; `none` leaves the result out. */
    transferProtocol: 'SftpScp' as 'SftpScp' | 'NetworkShare' | 'none',
    /** The host of the method, perhaps with a port. */
    serverHostname: '127.0.0.1:22',
    /** The user name of the method's credentials; null for the user who runs the sandbox. */
    transferUsername: null as string | null,
    /** The directory that `sharedBasepath` shows in place of the directory of all jobs; null for the real one. */
    sharedRoot: null as string | null,
    /** The format of temporary private keys; `usual` is `rsa-pem` over SOAP, and that of the release over REST. */
    keyFormat: 'usual' as 'usual' | KeyFormat,
    /** Fewer are made sooner. */
    rsaBits: 2_048,
    /** Key pairs a job can have. */
    maxKeys: 6,
  };
}

/** Changes quirks in place. An unknown name is a `usage` error. */
export function changeHabits(habits: SandboxHabits, changes: Partial<SandboxHabits>): void {
  checkRelease(changes.release ?? habits.release);
  const unknown = Object.keys(changes).find((name) => !Object.hasOwn(habits, name));
  if (unknown !== undefined) throw new JobtailError('usage', `the sandbox has no quirk "${unknown}"`);
  Object.assign(habits, changes);
}
