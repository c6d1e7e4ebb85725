/** Where a test of the contract stands: the simulated cluster with one job, and the client under test. */
import { expect } from 'vitest';
import type { RecordedCall } from '../../simulator/traffic.ts';
import type { Grant, Part, Remote } from '../../src/agent/ports/server.ts';
import type { JobId } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { RestCapabilities } from '../../src/remote/rest/capabilities.ts';
import { RestRemote } from '../../src/remote/rest/client.ts';
import { SoapRemote, type SoapRemoteOptions } from '../../src/remote/soap/client.ts';
import { GivenSession, jobId, remoteParts } from '../support/wire-remote.ts';
import { closedAtEnd } from '../support/wire-server.ts';
import type { SandboxService } from './sandbox-service.ts';
import type { Dialect, ServedJob } from './service.ts';

/** Far beyond what anything here takes. */
const LIMIT_MS = 60_000;

export const signal = new AbortController().signal;

export interface PlaceOptions {
  readonly grant?: Grant['kind'];
  /** Session codes that the service does not know: they are shown before the good grant, or instead of it. */
  readonly stale?: { readonly codes: readonly string[]; readonly only?: boolean };
}

export interface Place {
  readonly service: SandboxService;
  readonly remote: Remote;
  readonly session: GivenSession;
  readonly grant: Grant;
  readonly jobId: JobId;
  /** Checks that the last request was understood exactly so. */
  understood(operation: Operation, fields?: Pick<RecordedCall, 'path'>): void;
}

/** Serves a job, and makes a client for it. */
export type Serve = (job: ServedJob, options?: PlaceOptions) => Promise<Place>;

export async function makePlace(
  service: SandboxService,
  dialect: Dialect,
  job: ServedJob,
  options: PlaceOptions = {},
): Promise<Place> {
  await service.serve(job, dialect);
  const grant = await service.grant(options.grant ?? 'session');
  const { codes = [], only = false } = options.stale ?? {};
  const stale = codes.map((code): Grant => ({ kind: 'session', code }));
  const session = new GivenSession(...stale, ...(only ? [] : [grant]));
  const limits = { connectMs: LIMIT_MS, headersMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: LIMIT_MS };
  const http = closedAtEnd(new HttpClient({ limits }));
  const remote = remoteOf(service, dialect, { ...remoteParts([]), http, session });
  const version = dialect.protocol === 'rest' ? 'REST' : dialect.version;
  const understood: Place['understood'] = (operation, fields = {}) => {
    const { atMs: _, ...found } = service.sandbox.calls.at(-1) ?? { atMs: 0 };
    expect(found).toEqual({ operation, version, jobId: job.jobId, ...fields });
  };
  return { service, remote, session, grant, jobId: jobId(job.jobId), understood };
}

type SharedOptions = Omit<SoapRemoteOptions, 'namespace' | 'url' | 'soapVersion'>;

/** The client; of a service that speaks REST, it knows nothing yet. */
function remoteOf({ sandbox }: SandboxService, { protocol, version }: Dialect, shared: SharedOptions): Remote {
  if (protocol === 'soap') {
    const soapVersion = version === '1.1' ? '1.1' : '1.2';
    return new SoapRemote({ ...shared, namespace: sandbox.namespace, url: sandbox.fileTransferUrl, soapVersion });
  }
  const capabilities = new RestCapabilities({ kept: new Map(), onChange: () => undefined, now: () => 0 });
  return new RestRemote({ ...shared, capabilities, url: sandbox.restUrl });
}

/** A part with its whole text in place of its content, which is given back. */
export async function readPart({ content, ...part }: Part): Promise<Omit<Part, 'content'> & { text: string }> {
  const bytes = await content.read(0, content.length);
  expect(bytes.length).toBe(content.length);
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  await content.release();
  return { ...part, text };
}

/** The bytes of a whole file. */
export async function download({ remote, jobId }: Place, name: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const length = await remote.downloadFile(jobId, name, (bytes) => void pieces.push(Buffer.from(bytes)), signal);
  const bytes = Buffer.concat(pieces);
  expect(length).toBe(bytes.length);
  return bytes;
}
