/**
 * The configuration as the rest of the program sees it: checked, complete (defaults filled in), paths absolute,
 * durations in milliseconds. The names are those of the YAML file; only durations change their ending (`Seconds`,
 * `Minutes` -> `Ms`).
 */
import type { AuthSettings } from '../auth.ts';
import type { JobId, LiveFileName, TaskId } from '../job.ts';

export const SOAP_VERSIONS = ['1.1', '1.2'] as const;
export const TRANSFER_WAYS = ['soap', 'direct', 'auto'] as const;
export const HOST_KEY_CHECKS = ['accept-new', 'strict'] as const;
export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

export interface Config {
  /** The file this was read from, absolute. */
  readonly file: string;
  readonly service: ServiceConfig;
  readonly auth: AuthSettings;
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
