/** Downloads beside the service: its temporary keys, what a transfer with one brings, and what is no readable file. */
import fs from 'node:fs/promises';
import path from 'node:path';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import type { DirectFile, DirectRequest, DirectTransfer, Irregular } from '../../src/agent/ports/transfer.ts';
import type { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { Secrets } from '../../src/redact.ts';
import { refusalOf } from '../../src/remote/refusals.ts';
import { type Clock, sleep } from '../../src/system/clock.ts';
import type { ResultKind } from './cluster.ts';
import type { SimulatedService } from './service.ts';

/** How V6.3.2 refuses what is no readable file (docs/dev/rest.md 3.6). */
const WORDS: Partial<Record<ResultKind, string>> = {
  'link to a directory': 'Failure',
  'dead link': "No such file. Path: '/scratch/nothing'.",
  unreadable: 'Permission denied',
};
const IRREGULAR: Partial<Record<ResultKind, Irregular>> = {
  'link to a directory': 'a link to a directory',
  'dead link': 'a link to a missing file',
};

/** How a download is refused; undefined if it is not. `kind`: undefined where there is nothing. */
export function refused(name: string, kind: ResultKind | undefined): JobtailError | undefined {
  const words = kind === undefined ? "No such file. Path: '/scratch'." : WORDS[kind];
  if (words === undefined) return undefined;
  const problem = {
    words: `Requested path '${name}' was not found. Exception message: '${words}'.`,
    ...{ title: 'Invalid Request', isOwn: true, isPage: false },
  };
  const answer = { operation: 'DownloadFileFromCluster', status: 400, problem, urlKey: 'service' } as const;
  const options = { secrets: new Secrets(), isSessionFault: () => false };
  return refusalOf(
    answer as unknown as Parameters<typeof refusalOf>[0],
    options as unknown as Parameters<typeof refusalOf>[1],
  );
}

export function grant({ keys, calls }: SimulatedService, jobId: JobId): TransferMethod {
  const publicKey = `ssh-ed25519 ${calls}`;
  keys.add({ jobId, publicKey });
  const credentials = { username: 'alice', privateKey: 'a private key', publicKey };
  return { serverHostname: `host-of-${jobId}`, sharedBasepath: jobId, protocol: 'SftpScp', credentials };
}

export function directTransfer(service: SimulatedService, clock: Clock): DirectTransfer {
  return {
    fetch: async <File extends DirectFile>(request: DirectRequest<File>) => {
      const { method, files, directory, onFiles, onIrregular, onReached, signal } = request;
      await sleep(clock, service.workMs, signal);
      onReached();
      const job = service.job(method.sharedBasepath as JobId);
      for (const file of job.isDeleted ? [] : files) {
        const name = `/${file.parts.join('/')}`;
        const { kind = 'file' } = job.results.get(name) ?? {};
        const irregular = IRREGULAR[kind];
        if (irregular !== undefined) onIrregular(file, irregular);
        const content = job.contentAt(name);
        if (content === undefined || kind !== 'file') continue;
        const arrived = path.join(directory, ...file.parts);
        await fs.mkdir(path.dirname(arrived), { recursive: true });
        const handle = await fs.open(arrived, 'w');
        await handle.write(content, 0, content.length, 0);
        await handle.close();
        await onFiles([{ file, path: arrived }]);
      }
    },
    list: async () => ({ files: [], links: 0 }),
  };
}
