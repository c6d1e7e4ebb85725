/** JobManagementWs on the wire: what is made of the answers, and how little of them is believed. */
import { describe, expect, test } from 'vitest';
import type { JobInformation } from '../../../src/job-information.ts';
import { HttpClient } from '../../../src/remote/http/http-client.ts';
import type { CallEvent } from '../../../src/remote/session-calls.ts';
import { SoapJobService } from '../../../src/remote/soap/client.ts';
import type { SoapVersion } from '../../../src/remote/soap/contract.ts';
import { NAMESPACE, response, SOAP_1_1, SOAP_1_2 } from '../../support/wire-envelopes.ts';
import { GivenSession, JOB, jobId, remoteParts, TEST_LIMITS } from '../../support/wire-remote.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../../support/wire-server.ts';

const { signal } = new AbortController();

/** A service that always gives this answer. */
async function serve(body: string, soapVersion: SoapVersion = '1.1') {
  const events: CallEvent[] = [];
  const server = closedAtEnd(
    await startHttpServer(async (request, answer) => {
      await bodyOf(request);
      const xml = soapVersion === '1.2' ? 'application/soap+xml' : 'text/xml';
      answer.writeHead(200, { 'content-type': `${xml}; charset=utf-8` }).end(body);
    }),
  );
  const http = closedAtEnd(new HttpClient({ limits: TEST_LIMITS }));
  const session = new GivenSession();
  const common = { ...remoteParts(events), namespace: NAMESPACE, url: server.url, soapVersion, http, session };
  return { service: new SoapJobService(common), events };
}

const TASK_ROW = `<SubmittedTaskInfoExt><id>9223372036854775807</id><name>solve</name><state>Failed</state>
  <allocatedTime>3.5</allocatedTime><allocatedCoreIds/><startTime>2026-11-05T06:07:08</startTime><endTime xsi:nil="true"/>
  <errorMessage>a &lt; b</errorMessage><allParameters>id=1</allParameters></SubmittedTaskInfoExt>`;
const fields = (id: string, tasks = TASK_ROW) => `<id>${id}</id><name>Ünï ${id}</name><state>Running</state>
  <priority>Average</priority><project>P</project><creationTime>2026-11-05T06:07:08Z</creationTime>
  <submitTime>2026-11-05T07:07:08.25+01:00</submitTime><startTime xsi:nil="true"/><endTime/>
  <totalAllocatedTime xsi:nil="true"/><allParameters>name=x</allParameters>
  <nodeType><x:id xmlns:x="urn:x">77</x:id><id>78</id><name>a node</name></nodeType><tasks>${tasks}</tasks>`;
const jobAnswer = (inner: string) =>
  response('GetCurrentInfoForJob', `<GetCurrentInfoForJobResult>${inner}</GetCurrentInfoForJobResult>`);
const listAnswer = (...records: string[]) =>
  response(
    'ListJobsForCurrentUser',
    `<ListJobsForCurrentUserResult>${records.join('')}</ListJobsForCurrentUserResult>`,
  );
const row = (inner: string) => `<SubmittedJobInfoExt>${inner}</SubmittedJobInfoExt>`;

const UTC = Date.UTC(2026, 10, 5, 6, 7, 8);
const READ: JobInformation = {
  id: JOB,
  name: `Ünï ${JOB}`,
  state: 'Running',
  creationTime: { text: '2026-11-05T06:07:08Z', ms: UTC },
  submitTime: { text: '2026-11-05T07:07:08.25+01:00', ms: UTC + 250 },
  startTime: null,
  endTime: null,
  tasks: [
    {
      id: '9223372036854775807' as never,
      name: 'solve',
      state: 'Failed',
      startTime: { text: '2026-11-05T06:07:08', ms: null },
      endTime: null,
      errorMessage: 'a < b',
    },
  ],
};

test.each(['1.1', '1.2'] as const)(
  'over SOAP %s all of a job is read, and of a list each job once',
  async (version) => {
    const inVersion = (text: string) => (version === '1.2' ? text.replace(SOAP_1_1, SOAP_1_2) : text);
    const one = await serve(inVersion(jobAnswer(fields(JOB))), version);
    expect(await one.service.getJob(JOB, signal)).toEqual(READ);
    expect(one.events).toMatchObject([{ operation: 'GetCurrentInfoForJob', outcome: 'ok' }]);
    const nil = '<SubmittedJobInfoExt xsi:nil="true"/>';
    const rows = [row(fields(JOB)), nil, row(fields('502', '')), row(fields(JOB, ''))];
    const jobs = await (await serve(inVersion(listAnswer(...rows)), version)).service.listJobs(signal);
    expect(jobs[0]).toEqual(READ);
    expect(jobs.map(({ id, tasks }) => [id, tasks.length])).toEqual([
      ['501', 1],
      ['502', 0],
    ]);
  },
);

describe('an answer', () => {
  test('without a job says that there is none', async () => {
    for (const nothing of [
      response('GetCurrentInfoForJob', ''),
      response('GetCurrentInfoForJob', '<GetCurrentInfoForJobResult xsi:nil="true"/>'),
    ]) {
      const { service } = await serve(nothing);
      await expect(service.getJob(JOB, signal)).rejects.toMatchObject({ code: 'not-found' });
    }
    for (const nothing of [response('ListJobsForCurrentUser', ''), listAnswer()]) {
      const { service } = await serve(nothing);
      expect(await service.listJobs(signal)).toEqual([]);
    }
  });

  test('may lack every element', async () => {
    const { service } = await serve(jobAnswer(''));
    const nothing = { name: null, state: null, creationTime: null, endTime: null, tasks: [] };
    expect(await service.getJob(JOB, signal)).toMatchObject({ id: JOB, ...nothing });
  });

  test('about another job is none to the question', async () => {
    const { service } = await serve(jobAnswer(fields('502')));
    await expect(service.getJob(JOB, signal)).rejects.toMatchObject({
      code: 'unexpected-answer',
      hint: expect.stringContaining('service.jobsUrl'),
    });
  });

  test('names no job by what is no id, and none by an element of something else', async () => {
    const rows = ['', '<id>x</id>', '<id>9223372036854775808</id>', '<nodeType><id>5</id></nodeType>'];
    const { service } = await serve(listAnswer(...rows.map(row)));
    expect(await service.listJobs(signal)).toEqual([]);
  });
});

test('many jobs are read in slices', async () => {
  const rows = Array.from({ length: 20_000 }, (_, index) => row(`<id>${index + 1}</id><state>Finished</state>`));
  const { service } = await serve(listAnswer(...rows));
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 5);
  const jobs = await service.listJobs(signal);
  clearInterval(timer);
  expect(jobs.at(-1)?.id).toBe(jobId('20000'));
  expect(turns).toBeGreaterThan(2);
});
