/**
 * SftpScp: files over SSH with the temporary key of the method (docs/dev/soap.md 2.2), by rsync, which resumes and sends
 * only changes. Many sites allow it by a forced command, and have no SFTP (docs/dev/servers.md 5.3).
 */
import type { DirectRequest, DirectTransfer } from '../agent/ports/transfer.ts';
import { JobtailError } from '../errors.ts';
import { prepareDirectory } from './directories.ts';
import type { PrivateDirectory } from './private-directory.ts';
import { fetchByRsync } from './rsync.ts';
import { listByRsync } from './rsync-listing.ts';
import { accessOf, type SshOptions, withConfiguration } from './ssh-access.ts';

export interface SshTransferOptions extends SshOptions {
  readonly directory: PrivateDirectory;
  readonly idleMs?: number;
}

/** Maximum time without a byte; then the service sends the files. */
const IDLE_MS = 60_000;

export function sshTransfer({ idleMs = IDLE_MS, ...options }: SshTransferOptions): DirectTransfer {
  return {
    async fetch(request: DirectRequest) {
      const access = accessOf(request.method);
      await prepareDirectory(request.directory);
      const { signal } = request;
      const run = (configFile: string) => fetchByRsync({ ...request, access, configFile, idleMs });
      await withConfiguration(access, { ...options, signal }, run).catch(stoodStill(access.host));
    },
    async list({ method, signal }) {
      const access = accessOf(method);
      const run = (configFile: string) => listByRsync({ access, configFile, idleMs, signal });
      return await withConfiguration(access, { ...options, signal }, run).catch(stoodStill(access.host));
    },
  };
}

const stoodStill = (host: string) => (error: unknown) => {
  if (!(error instanceof JobtailError) || error.code !== 'timeout') throw error;
  throw new JobtailError('interrupted', `the transfer from ${host} stood still: ${error.message}, and was ended`, {
    hint: 'check the host and its file system; what arrived is kept',
  });
};
