import { readFile, stat } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { describeSandbox, secretFile, writeSecrets } from '../../simulator/description.ts';
import { freePort } from '../support/free-port.ts';
import { call, jobAnd, signIn, startSandbox } from './support.ts';

async function startControlled() {
  const sandbox = await startSandbox({ beforeListening: writeSecrets });
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${sandbox.baseUrl}/sandbox/${path}`, {
      method,
      headers: { authorization: `Bearer ${sandbox.controlToken}` },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: response.ok ? JSON.parse(text) : text };
  };
  return { sandbox, ask };
}

describe('the control interface', () => {
  it('submits jobs and shows their paths and the states of their tasks', async () => {
    const { sandbox, ask } = await startControlled();
    const command = [process.execPath, '-e', 'process.exit(4)'];
    const submitted = await ask('POST', 'jobs', { jobId: '501', held: true, tasks: [{ command }] });
    expect(submitted.body).toMatchObject({ jobId: '501', submitted: false, tasks: [{ state: 'no-process' }] });
    await ask('POST', 'jobs/501/submit');
    await sandbox.job('501')?.finished();
    const { body } = await ask('GET', 'jobs/501');
    expect(body).toMatchObject({ submitted: true, tasks: [{ state: 'ended', exit: { code: 4, signal: null } }] });
    expect(body.tasks[0].files.stdout).toBe(sandbox.job('501')?.tasks[0]?.files.stdout);
    expect((await ask('GET', 'jobs')).body).toEqual([body]);
    expect((await ask('POST', 'jobs/501/kill')).body).toEqual(body);
    expect(await ask('GET', 'jobs/502')).toMatchObject({ status: 404 });
    expect(await ask('POST', 'jobs/501/dance')).toMatchObject({ status: 404 });
    expect(await ask('POST', 'jobs', { jobId: '501', tasks: [] })).toEqual({
      status: 400,
      body: 'job 501 exists already',
    });
  });

  it('ends jobs, queues them again, gives them tasks, and has another state reported', async () => {
    const { ask } = await startControlled();
    const command = [process.execPath, '-e', 'setInterval(() => {}, 1000)'];
    const tasks = [{ taskId: '9001', name: 'solve', startDelayMs: 86_400_000, command }];
    const submitted = await ask('POST', 'jobs', { jobId: '501', name: 'heat', tasks });
    expect(submitted.body).toMatchObject({ name: 'heat', jobState: 'Queued', tasks: [{ taskState: 'Queued' }] });
    const change = async (verb: string, body?: unknown) => (await ask('POST', `jobs/501/${verb}`, body)).body;
    expect(await change('start')).toMatchObject({
      jobState: 'Running',
      tasks: [{ name: 'solve', taskState: 'Running' }],
    });
    expect(await change('fail', { message: 'node 7 is gone' })).toMatchObject({ jobState: 'Failed' });
    expect(await change('requeue')).toMatchObject({ jobState: 'Queued', tasks: [{ state: 'no-process', exit: null }] });
    expect(await change('cancel')).toMatchObject({ jobState: 'Canceled', tasks: [{ taskState: 'Canceled' }] });
    const added = await change('tasks', { taskId: '9002' });
    expect(added).toMatchObject({
      jobState: 'Running',
      tasks: [{ taskId: '9001' }, { taskId: '9002', name: 'task 2' }],
    });
    expect(await change('finish')).toMatchObject({ jobState: 'Canceled', tasks: [{}, { taskState: 'Finished' }] });
    expect(await change('state', { state: 'WaitingForServiceAccount' })).toMatchObject({
      jobState: 'WaitingForServiceAccount',
    });
    expect(await change('state', { state: null })).toMatchObject({ jobState: 'Canceled' });
    expect(await ask('POST', 'jobs/502/tasks', {})).toMatchObject({ status: 404 });
  });

  it('changes habits, faults, sessions and users, and shows what happened', async () => {
    const { sandbox, ask } = await startControlled();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    expect((await ask('POST', 'habits', { offsetEcho: 'nil' })).body).toMatchObject({ offsetEcho: 'nil' });
    expect(sandbox.habits.offsetEcho).toBe('nil');
    expect(await ask('POST', 'habits', { offsetecho: 'nil' })).toMatchObject({ status: 400 });
    await ask('POST', 'faults', { kind: 'fault', text: 'x', times: 1 });
    await call(sandbox, 'ListChangedFilesForJob', jobAnd('1', session));
    expect((await ask('GET', 'faults')).body).toMatchObject([{ applied: 1 }]);
    expect((await ask('DELETE', 'faults')).body).toEqual([]);
    await ask('DELETE', 'sessions');
    expect(await signIn(sandbox)).not.toBe(session);
    await ask('POST', 'users', { username: 'alice', password: 'new' });
    await ask('POST', 'users', { username: 'carol', password: 'p', token: 't' });
    expect(sandbox.users.map(({ username, password }) => [username, password])).toEqual([
      ['alice', 'new'],
      ['bob', 'battery staple'],
      ['carol', 'p'],
    ]);
    expect((await ask('GET', 'counters')).body).toMatchObject({
      calls: { ListChangedFilesForJob: 1 },
      signIns: 2,
      faults: 1,
    });
    expect((await ask('GET', 'calls')).body).toMatchObject([{ operation: 'ListChangedFilesForJob', jobId: '1' }]);
    expect((await ask('GET', 'keys')).body).toEqual([]);
  });

  it('wants its token', async () => {
    const { sandbox } = await startControlled();
    const response = await fetch(`${sandbox.baseUrl}/sandbox/jobs`, { method: 'POST', body: '{"tasks":[]}' });
    expect(response.status).toBe(401);
    expect(sandbox.jobs).toEqual([]);
  });
});

describe('the description', () => {
  it('names everything that a person needs, and no secret', async () => {
    const { sandbox } = await startControlled();
    const description = describeSandbox(sandbox);
    expect(parse(description)).toMatchObject({
      service: { fileTransferUrl: sandbox.fileTransferUrl, namespace: sandbox.namespace, baseUrl: sandbox.baseUrl },
      auth: { username: sandbox.users[0]?.username, passwordFile: secretFile(sandbox, 'password') },
    });
    expect(description).toContain(`# job management ${sandbox.baseUrl}/JobManagementWs\n`);
    expect(description).toContain(`# REST           ${sandbox.baseUrl}/heappe as release 6.3\n`);
    sandbox.setHabits({ jobService: false });
    expect(describeSandbox(sandbox)).toContain('# job management none\n');
    for (const secret of [sandbox.users[0]?.password, sandbox.users[0]?.token, sandbox.controlToken]) {
      expect(description).not.toContain(secret);
    }
    expect(await readFile(secretFile(sandbox, 'password'), 'utf8')).toBe(`${sandbox.users[0]?.password}\n`);
    expect((await stat(secretFile(sandbox, 'control-token'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['/heappe', {}],
    ['/api', { path: '/api' }],
  ])('is of REST if that is wanted, at %s', async (restPath, path) => {
    const { sandbox } = await startControlled();
    sandbox.setHabits({ restPath });
    const { service } = parse(describeSandbox(sandbox, 'rest'));
    expect(service).toEqual({ protocol: 'rest', baseUrl: sandbox.baseUrl, ...path });
  });

  it('comes after the secrets, which are there when the first call is answered', async () => {
    const port = await freePort();
    let answered: unknown;
    const call = () => fetch(`http://127.0.0.1:${port}/`).then(({ status }) => status);
    await startSandbox({
      port,
      beforeListening: async (sandbox) => {
        await writeSecrets(sandbox);
        answered = await call().catch((error: Error) => error.cause);
      },
    });
    expect(answered).toMatchObject({ code: 'ECONNREFUSED' });
    expect(await call()).toBeGreaterThan(0);
  });
});
