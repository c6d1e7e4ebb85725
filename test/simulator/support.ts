/** A sandbox in a temporary directory, and a client that shares no code with the product: envelopes by hand, fetch. */
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Sandbox, type SandboxOptions } from '../../simulator/sandbox.ts';

export const NAMESPACE = 'http://sandbox.example.org/';
export const ALICE = { username: 'alice', password: 'correct horse', token: 'alices-token' };
export const BOB = { username: 'bob', password: 'battery staple', token: 'bobs-token' };

const ENVELOPES = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;
export type Version = keyof typeof ENVELOPES;
export const VERSIONS = ['1.1', '1.2'] as const;

export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'jobtail-sandbox-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Closed and removed when the test ends. */
export async function startSandbox(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const directory = options.directory ?? (await temporaryDirectory());
  const sandbox = await Sandbox.start({ users: [ALICE, BOB], ...options, directory });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export function signInUrl(sandbox: Sandbox, operation: string): string {
  return `${sandbox.baseUrl}/service/UserAndLimitationManagement/${operation}`;
}

/** A session code. */
export async function signIn(sandbox: Sandbox, user = ALICE): Promise<string> {
  const credentials = { Username: user.username, Password: user.password };
  const response = await postJson(signInUrl(sandbox, 'AuthenticateUserAndPassword'), { Credentials: credentials });
  if (response.status !== 200) throw new Error(`sign-in: ${response.status} ${await response.text()}`);
  return (await response.json()) as string;
}

/** The envelope around the content of Body. */
export function envelope(version: Version, body: string): string {
  return (
    `<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="${ENVELOPES[version]}" ` +
    `xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><s:Body>${body}</s:Body></s:Envelope>`
  );
}

/** The header lines of a call. */
export function headersOf(version: Version, operation: string): Record<string, string> {
  const action = `${NAMESPACE}${operation}`;
  return version === '1.1'
    ? { 'content-type': 'text/xml; charset=utf-8', soapaction: `"${action}"` }
    : { 'content-type': `application/soap+xml; charset=utf-8; action="${action}"` };
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  /** What stands inside Body. */
  readonly body: string;
  readonly type: string | null;
}

/** Calls an operation with the children of its element as XML text. */
export async function call(
  sandbox: Sandbox,
  operation: string,
  children: string,
  version: Version = '1.1',
): Promise<Answered> {
  const request = envelope(version, `<${operation} xmlns="${NAMESPACE}">${children}</${operation}>`);
  return post(sandbox, request, headersOf(version, operation));
}

/** Calls an operation of JobManagementWs. */
export async function callJobs(
  sandbox: Sandbox,
  operation: string,
  children: string,
  version: Version = '1.1',
): Promise<Answered> {
  const body = envelope(version, `<${operation} xmlns="${NAMESPACE}">${children}</${operation}>`);
  return send(`${sandbox.baseUrl}/JobManagementWs`, { method: 'POST', headers: headersOf(version, operation), body });
}

export async function post(
  sandbox: Sandbox,
  body: string | Uint8Array,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Answered> {
  return send(sandbox.fileTransferUrl, { method: 'POST', headers, body, signal: signal ?? null });
}

async function send(url: string, request: RequestInit): Promise<Answered> {
  const response = await fetch(url, request);
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(await response.arrayBuffer());
  const inner = /<soap:Body>(.*)<\/soap:Body>/s.exec(text)?.[1] ?? '';
  return { status: response.status, text, body: inner, type: response.headers.get('content-type') };
}

export const jobAnd = (jobId: string, session: string, between = '') =>
  `<submittedJobInfoId>${jobId}</submittedJobInfoId>${between}<sessionCode>${session}</sessionCode>`;

export type PartEntry = readonly [taskId: string, fileType: string, offset: number | string];

export const offsets = (...entries: PartEntry[]) =>
  `<taskFileOffsets>${entries
    .map(
      ([taskId, fileType, offset]) =>
        `<TaskFileOffsetExt><submittedTaskInfoId>${taskId}</submittedTaskInfoId><fileType>${fileType}</fileType>` +
        `<offset>${offset}</offset></TaskFileOffsetExt>`,
    )
    .join('')}</taskFileOffsets>`;

/** The text of a fault. */
export function faultText({ body }: Answered): string {
  return (
    /<faultstring>(.*)<\/faultstring>|<soap:Text xml:lang="en">(.*)<\/soap:Text>/s.exec(body)?.slice(1).join('') ?? ''
  );
}

export interface Drained {
  readonly bytes: number;
  /** Bytes that the process grew by at most, meanwhile. */
  readonly grown: number;
  readonly complete: boolean;
}

/** Reads an answer to a POST without keeping it; `onHead` may stop it when it begins. */
export function drain(
  url: string,
  { headers, body }: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  onHead?: (stop: () => void) => void,
): Promise<Drained> {
  const before = process.memoryUsage.rss();
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let bytes = 0;
      let grown = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        grown = Math.max(grown, process.memoryUsage.rss() - before);
      });
      response.on('error', () => resolve({ bytes, grown, complete: false }));
      response.on('end', () => resolve({ bytes, grown, complete: true }));
      onHead?.(() => sent.destroy());
    });
    sent.end(body);
  });
}

/** Waits until `condition` holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
