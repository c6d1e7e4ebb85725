/** The agent, asked over its sockets by a user who may not read its state (docs/gateway.md). */
import { once } from 'node:events';
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { type Config, socketsOf } from '../config/config.ts';
import { asJobtailError, ERROR_POLICIES, type ErrorCode, JobtailError } from '../errors.ts';
import { isOver, type JobId } from '../job.ts';
import { groupName, ownUserName, userName } from '../system/owners.ts';
import type { DeliveryList, ListedJob, ResultList } from './show/lists.ts';
import type { ShownReport, WantedJobs } from './show/status-report.ts';
import type { JobFollower } from './stored-jobs.ts';

/** Whether the state is that of another user, whose agent can be asked instead. */
export const isOfAnother = (config: Config): boolean => socketsOf(config) !== null && isPrivate(config.state.directory);

/** Whether this user may not read the state or the mirrors. */
export function isPrivate(directory: string): boolean {
  try {
    fs.accessSync(directory, fs.constants.R_OK | fs.constants.X_OK);
    return false;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EACCES';
  }
}

/** @throws JobtailError if the state is that of another user */
export function requireOwner({ state: { directory } }: Config): void {
  if (!isPrivate(directory)) return;
  const owner = ownersOf(directory);
  const user = owner === undefined ? 'another user' : `the user ${userName(owner.uid)}`;
  throw new JobtailError('permission', `the state in ${directory} belongs to ${user}, and this is ${ownUserName()}`, {
    hint: 'run the command with sudo',
  });
}

/** For a command that reads mirrors. @throws JobtailError if this user may not */
export function requireMirrors({ mirror: { directory } }: Config): void {
  if (!isPrivate(directory)) return;
  throw onlyFor(ownersOf(directory), { what: 'read the mirrors', reason: directory });
}

export interface SocketRequest {
  /** Behind `/v1/`. */
  readonly path: string;
  /** `GET`, which changes nothing, if omitted. */
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

interface RefusedQuestion {
  readonly error: { readonly code: string; readonly message: string; readonly hint: string | null };
}

/** @throws JobtailError also what the agent responds as an error */
export async function askSocket<T extends object>(config: Config, question: SocketRequest): Promise<T> {
  const file = socketsOf(config)?.[(question.method ?? 'GET') === 'GET' ? 'read' : 'control'] ?? '';
  let answer: T | RefusedQuestion;
  try {
    answer = JSON.parse(await textFrom(file, question)) as T | RefusedQuestion;
  } catch (thrown) {
    if (question.signal?.aborted === true) throw new JobtailError('aborted', 'the command was interrupted');
    throw whyNot(thrown, file, config);
  }
  if (!('error' in answer) || !isRefused(answer)) return answer as T;
  const { code, message, hint } = answer.error;
  throw new JobtailError(code in ERROR_POLICIES ? (code as ErrorCode) : 'internal', message, {
    hint: hint ?? undefined,
  });
}

const isRefused = (answer: { readonly error: unknown }): answer is RefusedQuestion =>
  typeof (answer.error as { code?: unknown } | null)?.code === 'string';

async function textFrom(socketPath: string, { path: at, method = 'GET', body, signal }: SocketRequest) {
  // Most commands need none of it.
  const [{ request: requestOf }, { text }] = await Promise.all([import('node:http'), import('node:stream/consumers')]);
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  const options = { socketPath, path: `/v1/${at}`, method, headers, agent: false as const, signal };
  const request = requestOf(options);
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return await text(response);
}

/** The followed jobs, as the agent reports them: as `FollowedJobs`. */
export function jobsOfAgent(config: Config) {
  const get = <T extends object>(path: string) => askSocket<T>(config, { path });
  const report = async (wanted: WantedJobs) => {
    const places = typeof wanted === 'object' ? wanted.map((jobId) => `/${jobId}`) : [wanted === 'all' ? '?all=1' : ''];
    const reports: ShownReport[] = [];
    for (const place of places) reports.push(await get(`jobs${place}`));
    const [first] = reports as [(typeof reports)[0]];
    return { ...first, jobs: reports.flatMap(({ jobs }) => jobs) };
  };
  return {
    job: async (jobId: JobId) => (await report([jobId])).jobs[0],
    ended: async (jobId: JobId) => (await report([jobId])).jobs.find(isOver),
    report,
    reported: async () => (await get<{ readonly jobs: ListedJob[] }>('reported-jobs')).jobs,
    results: (jobId: JobId) => get<ResultList>(`jobs/${jobId}/results`),
    deliveries: () => get<DeliveryList>('notifications'),
    follower: async (): Promise<JobFollower> => ({ by: 'agent', text: 'the running agent follows it' }),
    close: async () => {},
  };
}

/** Names who may ask: Node.js shows a server no user, so the owner, group and mode of the socket decide. */
function whyNot(thrown: unknown, file: string, { api, state }: Config): JobtailError {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (/^(ENOENT|ECONNREFUSED|ECONNRESET|EPIPE)$/.test(code ?? '') || thrown instanceof SyntaxError)
    return new JobtailError('store', `no agent responds at ${file}, and ${state.directory} belongs to another user`, {
      hint: 'start the agent, for example with: sudo systemctl start agent',
    });
  if (code !== 'EACCES' && code !== 'EPERM') return asJobtailError(thrown);
  const owner = ownersOf(file) ?? ownersOf(path.dirname(file));
  if (!file.endsWith('control.sock')) return onlyFor(owner, { what: 'ask the agent', reason: message });
  const what = 'change what the agent does';
  return onlyFor(owner, { what, reason: message, group: api.controlGroup });
}

interface Reserved {
  readonly what: string;
  readonly reason: string;
  /** That of the file if omitted; null: none. */
  readonly group?: string | null;
}

function onlyFor(owner: fs.Stats | undefined, { what, reason, group }: Reserved): JobtailError {
  const user = owner === undefined ? 'of the agent' : userName(owner.uid);
  // Members of root's group may do more than this.
  const members = group === undefined ? owner && owner.gid !== 0 && groupName(owner.gid) : group;
  const who = `the user ${user}${members ? ` and members of the group ${members}` : ''}`;
  const set = group === null ? 'set api.controlGroup; or ' : '';
  const join = members ? `sudo usermod -aG ${members} ${ownUserName()}, then log in again; or ` : set;
  return new JobtailError('permission', `only ${who} may ${what} (${reason})`, {
    hint: `${join}run the command with sudo`,
  });
}

function ownersOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file);
  } catch {
    return undefined;
  }
}
