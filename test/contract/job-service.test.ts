/** The client of JobManagementWs against servers that are not made for it: the sandbox, and PHP's SoapServer. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { jobTimeOf } from '../../src/job-information.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { SoapJobService } from '../../src/remote/soap/client.ts';
import { needs } from '../support/needs.ts';
import { GivenSession, jobId, remoteParts, TEST_LIMITS } from '../support/wire-remote.ts';
import { closedAtEnd } from '../support/wire-server.ts';
import { signal } from './contract-place.ts';
import { PhpService, type ServedInformation } from './php-service.ts';
import { SandboxService } from './sandbox-service.ts';
import { type ContractService, LONG_MAX, LONG_MIN, soapDialect, VERSIONS, type Version } from './service.ts';

/** A client of a server, with what the server wants to be shown. */
async function clientOf(server: ContractService, soapVersion: Version, stale: string[] = []) {
  const { namespace, jobsUrl: url } = server;
  const http = closedAtEnd(new HttpClient({ limits: TEST_LIMITS }));
  const session = new GivenSession(
    ...stale.map((code) => ({ kind: 'session', code }) as const),
    await server.grant('session'),
  );
  const common = { ...remoteParts([]), namespace, url, soapVersion, http, session };
  return { session, service: new SoapJobService(common) };
}

const NAME = 'měření & <b>"č. 7"</b> \u{1F600}';
const TASK = { id: LONG_MIN, name: NAME, state: 'Failed', allocatedTime: 2.5, startTime: '2026-02-03T04:05:06Z' };
const NOTHING = { priority: null, submitTime: null, startTime: null, totalAllocatedTime: null };
const TOLD: readonly ServedInformation[] = [
  {
    ...{ id: LONG_MAX, name: NAME, state: 'Running', ...NOTHING },
    ...{ creationTime: '2026-02-03T04:05:06', endTime: null, allParameters: 'a=1;b=<2>' },
    tasks: { SubmittedTaskInfoExt: [{ ...TASK, endTime: null, errorMessage: 'uzel 7: <exit> & "konec"' }, null] },
  },
  { id: '502', state: null, ...NOTHING, creationTime: null, endTime: null },
];
const READ = [
  {
    ...{ id: LONG_MAX, name: NAME, state: 'Running', submitTime: null, startTime: null, endTime: null },
    creationTime: jobTimeOf('2026-02-03T04:05:06'),
    tasks: [
      {
        ...{ id: LONG_MIN, name: NAME, state: 'Failed', endTime: null, errorMessage: 'uzel 7: <exit> & "konec"' },
        startTime: jobTimeOf('2026-02-03T04:05:06Z'),
      },
    ],
  },
  {
    ...{ id: '502', name: null, state: null, creationTime: null, submitTime: null, startTime: null, endTime: null },
    tasks: [],
  },
];

describe("PHP's SoapServer", needs('php', 'php-soap'), () => {
  let php: PhpService;
  beforeAll(async () => {
    php = await PhpService.start();
    await php.serve({ jobId: '501', information: TOLD });
  });
  afterAll(() => php?.close());
  test.each(VERSIONS)('over SOAP %s tells of jobs, and understands the questions', async (version) => {
    const { service } = await clientOf(php, version);
    expect(await service.listJobs(signal)).toEqual(READ);
    expect((await php.calls()).at(-1)).toMatchObject({ operation: 'ListJobsForCurrentUser', version });
    expect(await service.getJob(jobId(LONG_MAX), signal)).toEqual(READ[0]);
    expect((await php.calls()).at(-1)?.request).toMatchObject({ submittedJobInfoId: LONG_MAX });
  });

  test.each(VERSIONS)('over SOAP %s renews a lost session, and says that a job is not there', async (version) => {
    const { service, session } = await clientOf(php, version, ['x']);
    expect(await service.listJobs(signal)).toHaveLength(2);
    expect(session.lostGrants).toHaveLength(1);
    await expect(service.getJob(jobId('777'), signal)).rejects.toMatchObject({ code: 'fault' });
  });
});

test.each(VERSIONS)('the sandbox over SOAP %s tells of the job that it has', async (version) => {
  const sandbox = await SandboxService.start();
  onTestFinished(() => sandbox.close());
  await sandbox.serve(
    {
      jobId: '501',
      tasks: [
        { taskId: '9001', live: {} },
        { taskId: LONG_MAX, live: {} },
      ],
    },
    soapDialect(version),
  );
  const { service } = await clientOf(sandbox, version);
  const job = await service.getJob(jobId('501'), signal);
  expect(job).toMatchObject({ id: '501', name: 'job 501', tasks: [{ id: '9001' }, { id: LONG_MAX }] });
  expect(job.creationTime?.ms).toBeGreaterThan(Date.UTC(2020, 0));
  expect(await service.listJobs(signal)).toEqual([job]);
});
