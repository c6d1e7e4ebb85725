/** What a command asks the agent at its sockets. */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { jobsOfAgent } from '../../src/cli/agent-socket.ts';
import { checkAgent } from '../../src/cli/check/machine.ts';
import { configurationAsOwner } from '../../src/cli/configuration.ts';
import { execute } from '../../src/cli/execute.ts';
import type { JobId } from '../../src/job.ts';
import { listenAt } from '../../src/system/listen.ts';
import { restConfig } from '../config/files.ts';
import { captured } from './own-state.ts';

it('agent status asks for the report of the agent once, or once for each named job', async () => {
  const { directory, config } = await restConfig({ api: { directory: '.' } });
  const asked: string[] = [];
  const surroundings = { disks: [{ freeBytes: 1 }], view: { address: 'there', answers: true } };
  const server = http.createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(JSON.stringify({ jobs: [], ...surroundings }));
  });
  await listenAt(server, { path: path.join(directory, 'read.sock') });
  onTestFinished(() => void server.close());
  const jobs = jobsOfAgent(config);
  expect(await jobs.report(undefined)).toEqual({ jobs: [], ...surroundings });
  expect(asked).toEqual(['/v1/jobs']);
  expect(await jobs.report(['501', '502'] as JobId[])).toEqual({ jobs: [], ...surroundings });
  expect(asked.slice(1)).toEqual(['/v1/jobs/501', '/v1/jobs/502']);
});

const WATCHED = '{"jobId":"501","tasks":["502"],"files":["stdout"],"results":false,"stallAfterMinutes":90}';

function refuseAccess(directory: string): void {
  const access = fs.accessSync;
  vi.spyOn(fs, 'accessSync').mockImplementation((at, mode) => {
    if (at !== directory) return access(at, mode);
    throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  });
  onTestFinished(() => void vi.restoreAllMocks());
}

/** Runs a command beside an agent that responds so, by a user who may not read its state. */
async function besideAgent(line: string, respond: (response: http.ServerResponse) => void) {
  const { directory, file } = await restConfig({ api: { directory: '.' } });
  const asked: string[] = [];
  for (const name of ['read', 'control']) {
    const server = http.createServer(async (request, response) => {
      asked.push(`${name} ${request.method} ${request.url} ${await text(request)}`);
      respond(response);
    });
    await listenAt(server, { path: path.join(directory, `${name}.sock`) });
    onTestFinished(() => void server.close());
  }
  refuseAccess(path.join(directory, 'state'));
  const printed = captured();
  const [command = '', ...words] = line.split(' ');
  return { asked, printed, ended: execute([command, '--config', file, ...words]) };
}

it('agent check of a user who may not read the state reports no agent as stopped', async () => {
  const { config } = await restConfig({});
  expect(checkAgent(config)).toMatchObject([{ text: 'not running (agent run)' }]);
  refuseAccess(config.state.directory);
  expect(checkAgent(config)).toMatchObject([{ text: 'unknown: the state belongs to another user' }]);
});

it.each([
  ['watch 501 --task 502 --file stdout --no-results --stall-after 90m', `control POST /v1/jobs ${WATCHED}`],
  ['sync 501', 'control POST /v1/jobs/501/sync '],
  ['unwatch 501', 'control DELETE /v1/jobs/501 '],
  ['unwatch 501 --now', 'control DELETE /v1/jobs/501?now=1 '],
  ['status', 'read GET /v1/jobs '],
  ['status --all', 'read GET /v1/jobs?all=1 '],
  ['results 501', 'read GET /v1/jobs/501/results '],
  ['jobs', 'read GET /v1/reported-jobs '],
  ['notify --list', 'read GET /v1/notifications '],
  ['wait 501', 'read GET /v1/jobs/501 '],
  ['verify 501', 'read GET /v1/jobs/501/verification?complete=0 '],
  ['verify 501 --complete', 'read GET /v1/jobs/501/verification?complete=1 '],
])('agent %s of a user who may not read the state asks for what it was told', async (line, expected) => {
  const refused = '{"error": {"code": "usage", "message": "refused", "hint": null}}';
  const { asked, printed, ended } = await besideAgent(line, (response) => response.end(refused));
  await ended;
  expect(asked, printed()).toEqual([expected]);
  expect(printed()).toContain('refused');
});

it.each(['watch 501', 'sync 501', 'unwatch 501', 'verify 501'])(
  'Ctrl-C ends agent %s while the agent hangs',
  async (line) => {
    const { asked, ended } = await besideAgent(line, () => process.emit('SIGINT', 'SIGINT'));
    await ended;
    expect([asked.length, process.exitCode]).toEqual([1, 130]);
  },
);

it.each([
  ['watch 501 --no-wait', 'state', 'the state in DIR/state belongs to the user root, and this is', 'run the command'],
  [
    'watch 501 --foreground',
    'state',
    'the state in DIR/state belongs to the user root, and this is',
    'run the command',
  ],
  [
    'tail 501',
    'mirror',
    'only the user root may read the mirrors (DIR/mirror)\n',
    '       run the command with sudo\n',
  ],
])(
  'agent %s of a user who may not read what root has in %s names root, and no group',
  async (line, name, ...expected) => {
    const { directory, file } = await restConfig({});
    const refused = path.join(directory, name);
    fs.mkdirSync(refused, { mode: 0o700 });
    refuseAccess(refused);
    const stat = fs.statSync;
    vi.spyOn(fs, 'statSync').mockImplementation(((at: string, options: object) =>
      Object.assign(stat(at, options as never), at === refused ? { uid: 0, gid: 0 } : {})) as never);
    const printed = captured();
    const [command = '', ...words] = line.split(' ');
    await execute([command, '--config', file, ...words]);
    for (const text of expected) expect(printed().replaceAll(directory, 'DIR')).toContain(text);
    expect(process.exitCode).toBe(8);
  },
);

it('a command of root has the credentials of the unit, and becomes the owner of the state if no other user could put it there', async (context) => {
  if (process.geteuid?.() !== 0) context.skip('only root becomes another user');
  vi.stubEnv('CREDENTIALS_DIRECTORY', undefined);
  onTestFinished(() => [vi.unstubAllEnvs(), vi.restoreAllMocks()].forEach(() => {}));
  for (const name of ['HOME', 'USER', 'LOGNAME']) vi.stubEnv(name, process.env[name]);
  vi.spyOn(process as unknown as { initgroups(): void }, 'initgroups').mockReturnValue();
  vi.spyOn(process, 'setgid').mockReturnValue(undefined as never);
  const become = vi.spyOn(process, 'setuid').mockReturnValue(undefined as never);
  const { directory, file } = await restConfig({ state: { directory: 'a/state' } });
  await configurationAsOwner({ config: file });
  expect([process.env['CREDENTIALS_DIRECTORY'], become.mock.calls]).toEqual([directory, []]);
  fs.mkdirSync(path.join(directory, 'a', 'state'), { recursive: true });
  fs.chownSync(path.join(directory, 'a', 'state'), 1, 1);
  await configurationAsOwner({ config: file });
  expect(become.mock.calls).toEqual([[1]]);
  fs.chownSync(path.join(directory, 'a'), 2, 2);
  const message = expect.stringMatching(/a\/state belongs to the user \S+, by way of the user \S+$/);
  await expect(configurationAsOwner({ config: file })).rejects.toMatchObject({ code: 'permission', message });
});
