/**
 * The configuration as the rest of the program sees it: checked, complete (defaults filled in), paths absolute,
 * durations in milliseconds. The names are those of the YAML file; only durations change their ending (`Seconds`,
 * `Minutes` -> `Ms`).
 */
import type { JobId, LiveFileName, TaskId } from '../job.ts';

export const SOAP_VERSIONS = ['1.1', '1.2'] as const;
export const AUTH_METHODS = ['openid', 'external-token', 'cloud-platform', 'password', 'session-code'] as const;
export const TRANSFER_WAYS = ['soap', 'direct', 'auto'] as const;
export const HOST_KEY_CHECKS = ['accept-new', 'strict'] as const;
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** How to sign in (docs/interface.md 4.2); `session-code` takes a ready code instead. */
export type AuthMethod = (typeof AUTH_METHODS)[number];

/** Where a password, token or session code is read from, anew at every sign-in. The secret itself is never in here. */
export type SecretSource =
  | { readonly kind: 'file'; readonly path: string }
  /** `argv[0]` is the program; no shell. It has `timeoutMs` to print the secret. */
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly timeoutMs: number }
  /** A systemd credential: a file of this name in `$CREDENTIALS_DIRECTORY`. */
  | { readonly kind: 'credential'; readonly name: string };

export interface Config {
  /** The file this was read from, absolute. */
  readonly file: string;
  readonly service: ServiceConfig;
  readonly auth: AuthConfig;
  readonly mirror: MirrorConfig;
  readonly state: { readonly directory: string };
  readonly poll: { readonly minIntervalMs: number; readonly maxIntervalMs: number; readonly overlapBytes: number };
  readonly results: ResultsConfig;
  readonly watch: readonly WatchConfig[];
  readonly logging: { readonly level: (typeof LOG_LEVELS)[number] };
  readonly metrics: { readonly listen: { readonly host: string; readonly port: number } | null };
}

export interface MirrorConfig {
  readonly directory: string;
  readonly keepGenerations: number;
  /** Room on its disk that results leave free. */
  readonly minFreeBytes: number;
}

export interface ServiceConfig {
  /** {file_transfer_url} of docs/interface.md. */
  readonly fileTransferUrl: string;
  /** {service_namespace} of docs/interface.md. */
  readonly namespace: string;
  readonly soapVersion: (typeof SOAP_VERSIONS)[number];
  /** {base_url} of the sign-in, without a slash at its end. Null only with the method `session-code`. */
  readonly baseUrl: string | null;
  /** Calls at a time. */
  readonly concurrency: number;
  /** All calls together. */
  readonly requestsPerMinute: number;
  /** Of one call without progress. */
  readonly timeoutMs: number;
  readonly tls: TlsFiles;
  readonly proxy: string | null;
  /** `auto`, `utf-8`, or the name of a single-byte code page such as `windows-1250` (docs/servers.md 1.3). */
  readonly contentEncoding: string;
}

/** PEM files, absolute. `certFile` and `keyFile` are both given or both null. */
export interface TlsFiles {
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
}

interface AuthCommon {
  readonly secret: SecretSource;
  /** Between the base URL and the operation: starts with a slash or is empty. */
  readonly path: string;
  /** Instead of the operation name in docs/interface.md 4.2. */
  readonly operation: string | null;
  /** Where the session code stands in an answer that is an object; dots lead into inner objects. */
  readonly sessionCodeField: string | null;
  /** Text of a regular expression (compile with the flag `i`): a fault that matches means a lost session. */
  readonly sessionFaultPattern: string | null;
}

export type AuthConfig = AuthCommon &
  (
    | { readonly method: 'openid' | 'external-token' | 'password'; readonly username: string }
    /** `projectId` is canonical decimal text (64-bit). */
    | { readonly method: 'cloud-platform'; readonly username: string; readonly projectId: string }
    | { readonly method: 'session-code' }
  );

export interface ResultsConfig {
  readonly enabled: boolean;
  readonly intervalMs: number;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly maxFileBytes: number | null;
  readonly transfer: (typeof TRANSFER_WAYS)[number];
  /** With `auto`, larger files come by direct transfer. */
  readonly directAboveBytes: number;
  /** Bytes a second, of all results together. */
  readonly bandwidthLimit: number | null;
  /** Where directories of the cluster are mounted here: local paths by paths of the server. Nothing else is read. */
  readonly shareRoots: Readonly<Record<string, string>>;
  readonly ssh: SshConfig;
}

/** How the host key of a transfer host is checked. */
export interface SshConfig {
  readonly hostKeys: (typeof HOST_KEY_CHECKS)[number];
  /** Null: a file of the agent in the state directory. */
  readonly knownHostsFile: string | null;
  /** Public keys as in authorized_keys; if there are any, the host has to show one of them. */
  readonly pinnedKeys: readonly string[];
}

export interface WatchConfig {
  readonly job: JobId;
  /** May be empty: then only results are followed. */
  readonly tasks: readonly TaskId[];
  /** Never empty. */
  readonly files: readonly LiveFileName[];
  readonly results: boolean;
  /** Quiet time after which the job is settled by itself; null: never. */
  readonly settleAfterMs: number | null;
}
