/** JobManagementWs on PHP's SoapServer, which reads the same WSDL as the sandbox, asked by a client that is not ours. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JobOperation } from '../../src/operations.ts';
import { needs } from '../support/needs.ts';
import { PhpService, type ServedInformation } from './php-service.ts';
import { ZeepClient, type ZeepOutcome } from './python.ts';
import { LONG_MAX, LONG_MIN, VERSIONS } from './service.ts';

const NAME = 'měření & <b>"č. 7"</b> \u{1F600}';

const TASK = {
  id: LONG_MIN,
  name: NAME,
  state: 'Failed',
  allocatedTime: 2.5,
  allocatedCoreIds: '0, 1',
  startTime: '2026-02-03T04:05:06Z',
  endTime: null,
  errorMessage: 'uzel 7: <exit> & "konec"',
  allParameters: null,
};

const JOBS: readonly ServedInformation[] = [
  {
    id: LONG_MAX,
    name: NAME,
    state: 'Running',
    priority: 'Average',
    project: 'heat',
    creationTime: '2026-02-03T04:05:06',
    submitTime: '2026-02-03T04:05:06.7+01:00',
    startTime: '2026-02-03T04:05:06Z',
    endTime: null,
    totalAllocatedTime: 1e300,
    allParameters: 'a=1;b=<2>',
    tasks: { SubmittedTaskInfoExt: [TASK] },
  },
  {
    id: LONG_MIN,
    state: null,
    priority: null,
    creationTime: null,
    submitTime: null,
    startTime: null,
    endTime: null,
    totalAllocatedTime: null,
  },
];

/** As zeep tells them: what is missing is null. */
const TOLD = [
  {
    ...JOBS[0],
    creationTime: '2026-02-03T04:05:06',
    submitTime: '2026-02-03T04:05:06.700000+01:00',
    startTime: '2026-02-03T04:05:06+00:00',
    nodeType: null,
    tasks: { SubmittedTaskInfoExt: [{ ...TASK, startTime: '2026-02-03T04:05:06+00:00' }] },
  },
  { name: null, project: null, allParameters: null, nodeType: null, tasks: null, ...JOBS[1] },
];

describe("PHP's SoapServer as JobManagementWs", needs('php', 'php-soap', 'zeep'), () => {
  describe.each(VERSIONS)('over SOAP %s', (version) => {
    let service: PhpService;
    let zeep: ZeepClient;
    let sessionCode: string;

    beforeAll(async () => {
      service = await PhpService.start();
      await service.serve({ jobId: '501', information: JOBS });
      const grant = await service.grant('session');
      sessionCode = grant.kind === 'session' ? grant.code : '';
      zeep = new ZeepClient(`${service.jobsUrl}?wsdl`, 'JobManagementWs');
    });
    afterAll(async () => {
      await zeep?.close();
      await service?.close();
    });

    const call = (operation: JobOperation, fields: Readonly<Record<string, unknown>> = {}): Promise<ZeepOutcome> =>
      zeep.call({ operation, version, fields: { sessionCode, ...fields } });

    test('tells of one job and of all, and understands the requests', async () => {
      for (const [index, { id }] of JOBS.entries()) {
        expect(await call('GetCurrentInfoForJob', { submittedJobInfoId: id })).toEqual({ result: TOLD[index] });
        const request = { submittedJobInfoId: id, sessionCode };
        expect((await service.calls()).at(-1)).toMatchObject({ operation: 'GetCurrentInfoForJob', version, request });
      }
      expect(await call('ListJobsForCurrentUser')).toEqual({ result: TOLD });
      expect((await service.calls()).at(-1)?.request).toEqual({ sessionCode });
    });

    test('refuses a job that is not there, and a lost session', async () => {
      const missing = await call('GetCurrentInfoForJob', { submittedJobInfoId: '501' });
      expect(missing.fault?.message).toBe('Specified job with id 501 does not exist.');
      const lost = await call('ListJobsForCurrentUser', { sessionCode: 'x' });
      expect(lost.fault?.message).toBe('Session code x is not valid');
    });
  });
});
