/** JobManagementWs over real HTTP: what is reported of jobs, to whom, and how it is refused (docs/interface.md 10). */
import { describe, expect, it } from 'vitest';
import { wsdlOf } from '../../../src/remote/soap/contract.ts';
import { BOB, call, callJobs, faultText, jobAnd, NAMESPACE, signIn, startSandbox, VERSIONS } from '../support.ts';

const INFO = 'GetCurrentInfoForJob';
const LIST = 'ListJobsForCurrentUser';
const only = (session: string) => `<sessionCode>${session}</sessionCode>`;
const textsOf = (name: string, text: string) =>
  [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, inner]) => inner);

describe.each(VERSIONS)('JobManagementWs over SOAP %s', (version) => {
  it('tells of a job, byte for byte', async () => {
    let nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    const sandbox = await startSandbox({ clock: () => nowMs });
    const session = await signIn(sandbox);
    const tasks = [
      { taskId: '9001', name: 'a & b' },
      { taskId: '9002', startDelayMs: 86_400_000 },
    ];
    await sandbox.submitJob({ jobId: '501', name: 'měření <1>', tasks });
    nowMs += 1500;
    const answer = await callJobs(sandbox, INFO, jobAnd('501', session), version);
    expect(answer.status).toBe(200);
    expect(answer.body).toBe(
      `<${INFO}Response xmlns="${NAMESPACE}"><${INFO}Result><id>501</id><name>měření &lt;1&gt;</name><state>Running</state>` +
        '<priority>Average</priority><creationTime>2026-01-02T03:04:05.678Z</creationTime>' +
        '<submitTime>2026-01-02T03:04:05.678Z</submitTime><startTime>2026-01-02T03:04:05.678Z</startTime>' +
        '<endTime xsi:nil="true" /><totalAllocatedTime>1.5</totalAllocatedTime>' +
        '<nodeType><id>1</id><name>standard</name><state>Idle</state></nodeType><tasks>' +
        '<SubmittedTaskInfoExt><id>9001</id><name>a &amp; b</name><state>Running</state><allocatedTime>1.5</allocatedTime>' +
        '<allocatedCoreIds>0</allocatedCoreIds><startTime>2026-01-02T03:04:05.678Z</startTime>' +
        '<endTime xsi:nil="true" /></SubmittedTaskInfoExt>' +
        '<SubmittedTaskInfoExt><id>9002</id><name>task 2</name><state>Queued</state><allocatedTime xsi:nil="true" />' +
        '<startTime xsi:nil="true" /><endTime xsi:nil="true" /></SubmittedTaskInfoExt>' +
        `</tasks></${INFO}Result></${INFO}Response>`,
    );
    expect(sandbox.calls.at(-1)).toMatchObject({ operation: INFO, jobId: '501', version });
  });

  it('lists the jobs of the user, and of nobody else', async () => {
    const sandbox = await startSandbox();
    const ids = ['9223372036854775807', '-9223372036854775808', '7'];
    for (const jobId of ids) await sandbox.submitJob({ jobId, tasks: [] });
    await sandbox.submitJob({ jobId: '8', owner: 'bob', name: "bob's", tasks: [{ taskId: '80' }] });
    const alice = await callJobs(sandbox, LIST, only(await signIn(sandbox)), version);
    expect(alice.status).toBe(200);
    expect(textsOf('id', alice.body).filter((id) => id !== '1')).toEqual(ids);
    expect(sandbox.calls.at(-1)).toMatchObject({ operation: LIST, jobId: undefined });
    const bob = await callJobs(sandbox, LIST, only(await signIn(sandbox, BOB)), version);
    expect(textsOf('name', bob.body)).toEqual(["bob's", 'standard', 'task 1']);
    expect(sandbox.counters.calls[LIST]).toBe(2);
  });

  it('lists nothing, and nil entries, as the habits say', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    const list = async () => (await callJobs(sandbox, LIST, only(session), version)).body;
    expect(await list()).toBe(`<${LIST}Response xmlns="${NAMESPACE}"><${LIST}Result /></${LIST}Response>`);
    await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    sandbox.setHabits({ nilEntries: true, nullMembers: true });
    const nils = await list();
    expect(nils).toContain(`<${LIST}Result><SubmittedJobInfoExt xsi:nil="true" /><SubmittedJobInfoExt><id>501</id>`);
    expect(nils).toContain('<tasks><SubmittedTaskInfoExt xsi:nil="true" /><SubmittedTaskInfoExt><id>');
    for (const name of ['project', 'allParameters', 'errorMessage'])
      expect(nils).toContain(`<${name} xsi:nil="true" />`);
  });

  it('refuses as FileTransferWs does: a lost session, a job that is not there, one of another user', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '7', owner: 'bob', tasks: [] });
    const refusal = async (operation: string, children: string) => {
      const answer = await callJobs(sandbox, operation, children, version);
      return [answer.status, faultText(answer) || answer.text];
    };
    expect(await refusal(INFO, jobAnd('404', session))).toEqual([500, 'Specified job with id 404 does not exist.']);
    expect(await refusal(INFO, jobAnd('7', session))).toEqual([500, `Session code ${session} is not valid`]);
    sandbox.setHabits({ foreignJob: 'fault' });
    expect(await refusal(INFO, jobAnd('7', session))).toEqual([500, 'User alice may not use job 7.']);
    for (const [operation, children] of [
      [INFO, jobAnd('7', 'stale')],
      [LIST, only('stale')],
      [LIST, ''],
    ] as const) {
      expect((await refusal(operation, children))[1]).toMatch(/^Session code (stale)? is not valid$/);
    }
    sandbox.setHabits({ sessionLost: 401 });
    expect(await refusal(LIST, only('stale'))).toEqual([401, 'Session code stale is not valid']);
  });

  it('takes the operations of its own address only, and no member that does not belong there', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    const action = /Server did not recognize the value of/;
    expect(faultText(await callJobs(sandbox, 'ListChangedFilesForJob', jobAnd('1', session), version))).toMatch(action);
    expect(faultText(await call(sandbox, LIST, only(session), version))).toMatch(action);
    expect(faultText(await callJobs(sandbox, LIST, jobAnd('1', session), version))).toContain(
      `expected element sessionCode or the end of ${LIST}, found element submittedJobInfoId`,
    );
    expect(faultText(await callJobs(sandbox, INFO, only(session), version))).toContain(
      'expected element submittedJobInfoId, found element sessionCode',
    );
  });

  it('is spoiled by fault rules', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    sandbox.faults.add({ kind: 'fault', text: 'busy', operation: LIST, times: 1 });
    sandbox.faults.add({ kind: 'http', status: 503, jobId: '501', times: 1 });
    expect(faultText(await callJobs(sandbox, LIST, only(session), version))).toBe('busy');
    expect((await callJobs(sandbox, LIST, only(session), version)).status).toBe(200);
    expect((await callJobs(sandbox, INFO, jobAnd('501', session), version)).status).toBe(503);
    expect((await callJobs(sandbox, INFO, jobAnd('501', session), version)).status).toBe(200);
  });
});

describe('the address of JobManagementWs', () => {
  it('serves the contract', async () => {
    const sandbox = await startSandbox();
    const url = `${sandbox.baseUrl}/JobManagementWs`;
    expect(sandbox.jobsUrl).toBe(url);
    const wsdl = await (await fetch(`${url}?WSDL`)).text();
    expect(wsdl).toBe(wsdlOf({ namespace: NAMESPACE, url, service: 'JobManagementWs' }));
    expect(wsdl).toContain(`<soap12:address location="${url}"/>`);
    expect((await fetch(url)).status).toBe(405);
  });

  it('is not there on a server without it', async () => {
    const sandbox = await startSandbox({ habits: { jobService: false } });
    const session = await signIn(sandbox);
    expect(sandbox.jobsUrl).toBeNull();
    expect((await fetch(`${sandbox.baseUrl}/JobManagementWs?wsdl`)).status).toBe(404);
    expect((await callJobs(sandbox, LIST, only(session))).status).toBe(404);
    expect((await fetch(`${sandbox.fileTransferUrl}?wsdl`)).status).toBe(200);
  });

  it('tells what was so when it last looked at the cluster', async () => {
    let nowMs = 0;
    const sandbox = await startSandbox({ clock: () => nowMs, habits: { stateSeconds: 30 } });
    const session = await signIn(sandbox);
    const job = await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    const state = async () => textsOf('state', (await callJobs(sandbox, LIST, only(session))).body)[0];
    expect(await state()).toBe('Running');
    await job.end('Finished');
    nowMs = 29_999;
    expect(await state()).toBe('Running');
    expect(textsOf('state', (await callJobs(sandbox, INFO, jobAnd('501', session))).body)[0]).toBe('Running');
    nowMs = 30_000;
    expect(await state()).toBe('Finished');
  });

  it('tells times as if the job were old', async () => {
    const sandbox = await startSandbox({ clock: () => 86_400_000 });
    const session = await signIn(sandbox);
    const job = await sandbox.submitJob({ jobId: '501', ageSeconds: 86_400, tasks: [{}] });
    await job.end('Finished');
    const { body } = await callJobs(sandbox, INFO, jobAnd('501', session));
    for (const name of ['creationTime', 'submitTime', 'startTime', 'endTime']) {
      expect(new Set(textsOf(name, body))).toEqual(new Set(['1970-01-01T00:00:00.000Z']));
    }
  });

  it('tells times with and without their zone', async () => {
    const sandbox = await startSandbox({ clock: () => 0 });
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '501', held: true, tasks: [] });
    const reported: unknown[] = [];
    for (const jobTimes of ['utc', 'no-zone', 'offset'] as const) {
      sandbox.setHabits({ jobTimes });
      reported.push(...textsOf('creationTime', (await callJobs(sandbox, INFO, jobAnd('501', session))).body));
    }
    expect(reported).toEqual(['1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000', '1970-01-01T01:00:00.000+01:00']);
  });
});
