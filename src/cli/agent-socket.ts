/** The agent, asked over its sockets by a user who may not read its state (docs/gateway.md). */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { type Config, socketsOf } from '../config/config.ts';
import { asJobtailError, ERROR_POLICIES, type ErrorCode, JobtailError } from '../errors.ts';
import { groupName, ownUserName, userName } from '../system/owners.ts';

/** Whether the state is that of another user, whose agent can be asked instead. */
export function isOfAnother(config: Config): boolean {
  if (socketsOf(config) === null) return false;
  try {
    fs.accessSync(config.state.directory, fs.constants.R_OK | fs.constants.X_OK);
    return false;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EACCES';
  }
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

function textFrom(socketPath: string, { path: at, method = 'GET', body, signal }: SocketRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const options = {
      socketPath,
      path: `/v1/${at}`,
      method,
      headers,
      agent: false as const,
      ...(signal && { signal }),
    };
    const request = http.request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
      response.once('error', reject);
    });
    request.once('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
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
  const [user, group] = owner === undefined ? ['of the agent', ''] : [userName(owner.uid), groupName(owner.gid)];
  const isChange = file.endsWith('control.sock');
  const members = isChange ? api.controlGroup : group;
  const who = `the user ${user}${members ? ` and members of the group ${members}` : ''}`;
  const join = `sudo usermod -aG ${members} ${ownUserName()}, then log in again`;
  return new JobtailError(
    'permission',
    `only ${who} may ${isChange ? 'change what the agent does' : 'ask the agent'} (${message})`,
    {
      hint: `${members ? `${join}; or ` : 'set api.controlGroup to a group of yours, or '}run the command with sudo`,
    },
  );
}

function ownersOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file);
  } catch {
    return undefined;
  }
}
