/**
 * SftpScp: files over SSH with the temporary key of the method (docs/dev/soap.md 2.2). Tries what the key permits:
 * rsync, which resumes and sends only changes; then sftp. Many sites allow rsync by a forced command, and have no SFTP
 * (docs/dev/servers.md 5.3).
 */
import type { DirectRequest, DirectTransfer } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { NotInstalled } from '../system/program.ts';
import { prepareDirectory } from './arrivals.ts';
import type { PrivateDirectory } from './private-directory.ts';
import { fetchByRsync } from './rsync.ts';
import { listByRsync } from './rsync-listing.ts';
import { fetchBySftp } from './sftp.ts';
import { accessOf, type SshOptions, type SshRequest, withConfiguration } from './ssh-access.ts';

export interface SshTransferOptions extends SshOptions {
  readonly directory: PrivateDirectory;
  readonly idleMs?: number;
}

/** Maximum time without a byte; then the service sends the files. */
const IDLE_MS = 60_000;

/** Resolves with the reason if the key does not permit this method; rejects if none works now. Calls `onWay`. */
type Way = (request: SshRequest) => Promise<string | undefined>;

const WAYS: Readonly<Record<string, Way>> = { rsync: fetchByRsync, sftp: fetchBySftp };

export function sshTransfer({ idleMs = IDLE_MS, ...options }: SshTransferOptions): DirectTransfer {
  return {
    async fetch(request: DirectRequest) {
      const access = accessOf(request.method);
      await prepareDirectory(request.directory);
      const { signal } = request;
      const run = (configFile: string) => tryWays({ ...request, access, configFile, idleMs });
      await withConfiguration(access, { ...options, signal }, run);
    },
    async list({ method, signal }) {
      const access = accessOf(method);
      const run = (configFile: string) => listByRsync({ access, configFile, idleMs, signal });
      return await withConfiguration(access, { ...options, signal }, run).catch((error: unknown) => {
        throw error instanceof JobtailError && error.code === 'timeout' ? stoodStill(access.host, error) : error;
      });
    },
  };
}

async function tryWays(request: SshRequest): Promise<void> {
  const names = Object.keys(WAYS);
  const first = request.way !== null && names.includes(request.way) ? [request.way] : [];
  const refusals: string[] = [];
  for (const name of new Set([...first, ...names])) {
    const refused = await WAYS[name]?.(request).catch((error: unknown) => {
      if (error instanceof NotInstalled) return error.message;
      if (error instanceof JobtailError && error.code === 'timeout') throw stoodStill(request.access.host, error);
      throw error;
    });
    if (refused === undefined) return;
    refusals.push(`${name}: ${refused}`);
  }
  const message = `neither rsync nor sftp can read the files on ${request.access.host}`;
  throw new JobtailError('unexpected-answer', message, { hint: refusals.join('; ') });
}

function stoodStill(host: string, { message }: JobtailError): JobtailError {
  return new JobtailError('interrupted', `the transfer from ${host} stood still: ${message}, and was ended`, {
    hint: 'check the host and its file system; what arrived is kept',
  });
}
