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
    /** The `offset` of an entry: the requested one, or nil. */
    offsetEcho: 'echo' as 'echo' | 'nil',

    // Listing and whole files (docs/dev/servers.md 4)
    /** Names as listed: `/123/sub/file`, `123/sub/file`. */
    listForm: 'leading-slash' as 'leading-slash' | 'bare',
    /** Names listed besides the real ones, exactly as written here, each with the text it downloads as. */
    extraFiles: {} as Record<string, string>,

    // Jobs and tasks (docs/dev/servers.md 10)
    /** JobManagementWs is there. */
    jobService: true,

    // REST (docs/dev/rest.md)
    /** The release of REST; SOAP has none. */
    release: '6.3' as ReleaseName,

    // Sessions and sign-in (docs/dev/servers.md 3)
    /** The session code as a JSON string; or `header`, for token sign-ins only: calls then show the token. */
    signInAnswer: 'json-string' as 'json-string' | 'header',

    // Transfer methods (docs/dev/servers.md 5)
    /** The protocol of GetFileTransferMethod. */
    transferProtocol: 'SftpScp' as 'SftpScp' | 'NetworkShare',
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
  };
}

/** Changes quirks in place. An unknown name is a `usage` error. */
export function changeHabits(habits: SandboxHabits, changes: Partial<SandboxHabits>): void {
  checkRelease(changes.release ?? habits.release);
  const unknown = Object.keys(changes).find((name) => !Object.hasOwn(habits, name));
  if (unknown !== undefined) throw new JobtailError('usage', `the sandbox has no quirk "${unknown}"`);
  Object.assign(habits, changes);
}
