/** Calls of the REST interface that share no code with the product: addresses and bodies by hand, fetch. */
import { writeFile } from 'node:fs/promises';
import type { JobSpec } from '../../../simulator/cluster/specs.ts';
import type { SandboxHabits } from '../../../simulator/habits.ts';
import type { ReleaseName } from '../../../simulator/rest/releases.ts';
import type { Sandbox, SandboxOptions } from '../../../simulator/sandbox.ts';
import { ALICE, startSandbox } from '../support.ts';

export const USERS = 'UserAndLimitationManagement';
export const PARTS = 'FileTransfer/DownloadPartsOfJobFilesFromCluster';
export const LISTING = 'FileTransfer/ListChangedFilesForJob';
export const FILE = 'FileTransfer/DownloadFileFromCluster';

export interface Answered {
  readonly status: number;
  readonly text: string;
  /** Undefined if the text is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects there
  readonly json: any;
  readonly headers: Headers;
}

async function answered(response: Response): Promise<Answered> {
  const { status, headers } = response;
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(await response.arrayBuffer());
  return { status, text, json: parsed(text), headers };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Texts are in English unless `headers` say otherwise. A string is sent as it is. */
export async function post(
  sandbox: Sandbox,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const response = await fetch(`${sandbox.restUrl}/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'accept-language': 'en', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return answered(response);
}

export async function get(
  sandbox: Sandbox,
  path: string,
  query: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const url = `${sandbox.restUrl}/${path}?${new URLSearchParams(query)}`;
  return answered(await fetch(url, { headers: { 'accept-language': 'en', ...headers } }));
}

/** A session code. */
export async function signIn(sandbox: Sandbox, user = ALICE): Promise<string> {
  const Credentials = { Username: user.username, Password: user.password };
  const { status, text, json } = await post(sandbox, `${USERS}/AuthenticateUserPassword`, { Credentials });
  if (status !== 200) throw new Error(`sign-in: ${status} ${text}`);
  return json;
}

/** The listing by the verb that the release has. */
export async function list(sandbox: Sandbox, SubmittedJobInfoId: string, SessionCode: string): Promise<Answered> {
  const byGet = await get(sandbox, LISTING, { SubmittedJobInfoId, SessionCode });
  if (byGet.status !== 405) return byGet;
  return post(sandbox, LISTING, { SubmittedJobInfoId: Number(SubmittedJobInfoId), SessionCode });
}

export type Entry = readonly [taskId: number, fileType: number, offset: number];

export const partsOf = (SessionCode: string, ...entries: readonly Entry[]) => ({
  SubmittedJobInfoId: 501,
  TaskFileOffsets: entries.map(([SubmittedTaskInfoId, FileType, Offset]) => ({
    SubmittedTaskInfoId,
    FileType,
    Offset,
  })),
  SessionCode,
});

export const LOG = 0;
export const PROGRESS = 1;
export const STDERR = 2;
export const STDOUT = 3;

/** A job 501 with tasks 9001 and 9002 whose specifications are 123 and 124, and a session of its owner. */
export async function startJob(
  release: ReleaseName,
  { habits = {}, job = {}, ...options }: Partial<SandboxOptions> & { readonly job?: Partial<JobSpec> } = {},
) {
  const changed: Partial<SandboxHabits> = { keyFormat: 'ec-pem', release, ...habits };
  const sandbox = await startSandbox({ ...options, habits: changed });
  const submitted = await sandbox.submitJob({
    jobId: '501',
    tasks: [
      { taskId: '9001', specificationId: '123' },
      { taskId: '9002', specificationId: '124' },
    ],
    ...job,
  });
  const [task, second] = submitted.tasks;
  if (task === undefined || second === undefined) throw new Error('two tasks were expected');
  return { sandbox, session: await signIn(sandbox), job: submitted, task, second };
}

export function write(path: string, content: string | Uint8Array): Promise<void> {
  return writeFile(path, content);
}
