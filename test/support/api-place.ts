/** Agents with sockets, those who ask at them, and users with and without rights; only root can play them. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { requestOf, taskOf } from './e2e-job.ts';
import { NOBODY, Place, type Sections } from './e2e-place.ts';
import type { Program } from './e2e-program.ts';

/** By what they are to the agent, whose user and group are NOBODY. */
export const USERS = {
  owner: { user: NOBODY, group: NOBODY },
  member: { user: 65_533, group: NOBODY },
  other: { user: 65_533, group: 65_533 },
} as const;

/** An agent with its sockets, which follows a job. */
async function agentOf(place: Place, job: JobDescription, service: ServiceOfPlace, sections: Sections) {
  const sockets = path.join(place.directory, 'sockets');
  const { jobsUrl } = service;
  place.configure(service, { service: { jobsUrl }, watch: [requestOf(job)], ...sections, api: { directory: sockets } });
  const agent = await place.run();
  await agent.logs('sockets listening');
  await place.mirrored(job, 'stdout');
  const [read, control] = [path.join(sockets, 'read.sock'), path.join(sockets, 'control.sock')];
  return { place, job, agent, sockets, read, control };
}

type ServiceOfPlace = Parameters<Place['configure']>[0] & { readonly jobsUrl: string };

export async function apiPlace(context: TestContext, sections: Sections = {}) {
  const place = Place.make(context);
  if (process.getuid?.() !== 0) context.skip('only root can run commands as other users');
  place.giveUpRights(context);
  fs.chmodSync(place.directory, 0o755);
  const sandbox = await place.startSandbox();
  const { baseUrl, username, jobsUrl } = sandbox;
  const passwordFile = path.join(place.directory, 'password');
  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  fs.chownSync(passwordFile, NOBODY, NOBODY);
  const job = await sandbox.submit({ tasks: [{}] });
  const as = (who: keyof typeof USERS, ...args: string[]): Program => place.startAt(place.configFile, args, USERS[who]);
  return { ...(await agentOf(place, job, { baseUrl, username, jobsUrl, passwordFile }, sections)), sandbox, as };
}

interface Response {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Sent {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One request at a socket. */
export async function ask(
  socketPath: string,
  at: string,
  { method = 'GET', body, headers }: Sent = {},
): Promise<Response> {
  const request = http.request({ socketPath, path: at, method, agent: false, ...(headers && { headers }) });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode ?? 0, json: JSON.parse(await text(response)) as Response['json'] };
}

/** An agent with its sockets and a view, which follows a job with a result. */
export async function socketPlace(context: TestContext) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const { files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'first\n');
  fs.writeFileSync(path.join(path.dirname(files.stdout), 'result.dat'), 'a result');
  const notify = [{ on: ['started'], command: ['false'] }];
  const view = { listen: path.join(place.directory, 'view.sock') };
  return { ...(await agentOf(place, job, sandbox, { notify, view, watchMine: {} })), sandbox };
}
