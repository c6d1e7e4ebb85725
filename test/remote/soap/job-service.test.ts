/** JobManagementWs on the wire: what is asked, what is made of the answers, and how little of them is believed. */
import { describe, expect, test } from 'vitest';
import type { JobInformation } from '../../../src/job-information.ts';
import { HttpClient } from '../../../src/remote/http/http-client.ts';
import type { CallEvent } from '../../../src/remote/session-calls.ts';
import { SoapJobService } from '../../../src/remote/soap/client.ts';
import type { SoapVersion } from '../../../src/remote/soap/contract.ts';
import { NAMESPACE, response, SOAP_1_1, SOAP_1_2 } from '../../support/wire-envelopes.ts';
import { GivenSession, JOB, jobId, remoteParts, SESSION_CODE, TEST_LIMITS } from '../../support/wire-remote.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../../support/wire-server.ts';

const { signal } = new AbortController();

interface Asked {
  readonly body: string;
  readonly action: string;
}

/** A service that gives the answers one after the other, the last one again and again. */
async function serve(answers: readonly string[], soapVersion: SoapVersion = '1.1', session = new GivenSession()) {
  const asked: Asked[] = [];
  const events: CallEvent[] = [];
  const left = [...answers];
  const server = closedAtEnd(
    await startHttpServer(async (request, answer) => {
      const { soapaction, 'content-type': type = '' } = request.headers;
      const action = typeof soapaction === 'string' ? soapaction : (/action="[^"]*"/.exec(type)?.[0] ?? '');
      asked.push({ body: await bodyOf(request), action });
      const body = (left.length > 1 ? left.shift() : left[0]) ?? '';
      const xml = soapVersion === '1.2' ? 'application/soap+xml' : 'text/xml';
      answer.writeHead(body.includes(':Fault>') ? 500 : 200, { 'content-type': `${xml}; charset=utf-8` }).end(body);
    }),
  );
  const http = closedAtEnd(new HttpClient({ limits: TEST_LIMITS }));
  const common = { ...remoteParts(events), namespace: NAMESPACE, url: server.url, soapVersion, http, session };
  const service = new SoapJobService(common);
  return { service, asked, events };
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

describe.each(['1.1', '1.2'] as const)('over SOAP %s', (version) => {
  const inVersion = (text: string) => (version === '1.2' ? text.replace(SOAP_1_1, SOAP_1_2) : text);

  test('a job is asked for, and all of it is read', async () => {
    const { service, asked, events } = await serve([inVersion(jobAnswer(fields(JOB)))], version);
    expect(await service.getJob(JOB, signal)).toEqual(READ);
    const [{ body, action } = { body: '', action: '' }] = asked;
    expect(body).toMatch(
      new RegExp(`<submittedJobInfoId>${JOB}</submittedJobInfoId>\\s*<sessionCode>${SESSION_CODE}</sessionCode>`),
    );
    expect(action).toContain(`"${NAMESPACE}GetCurrentInfoForJob"`);
    expect(events).toMatchObject([{ operation: 'GetCurrentInfoForJob', outcome: 'ok' }]);
  });

  test('the jobs of the user are listed, each once', async () => {
    const rows = [
      row(fields(JOB)),
      '<SubmittedJobInfoExt xsi:nil="true"/>',
      row(fields('502', '')),
      row(fields(JOB, '')),
    ];
    const { service, asked } = await serve([inVersion(listAnswer(...rows))], version);
    const jobs = await service.listJobs(signal);
    expect(jobs[0]).toEqual(READ);
    expect(jobs.map(({ id, tasks }) => [id, tasks.length])).toEqual([
      ['501', 1],
      ['502', 0],
    ]);
    expect(asked[0]?.body).not.toContain('submittedJobInfoId');
    expect(asked[0]?.body).toContain(`<sessionCode>${SESSION_CODE}</sessionCode>`);
  });
});

describe('an answer', () => {
  test('without a job says that there is none', async () => {
    for (const nothing of [
      response('GetCurrentInfoForJob', ''),
      response('GetCurrentInfoForJob', '<GetCurrentInfoForJobResult xsi:nil="true"/>'),
    ]) {
      const { service } = await serve([nothing]);
      await expect(service.getJob(JOB, signal)).rejects.toMatchObject({ code: 'not-found' });
    }
    for (const nothing of [response('ListJobsForCurrentUser', ''), listAnswer()]) {
      const { service } = await serve([nothing]);
      expect(await service.listJobs(signal)).toEqual([]);
    }
  });

  test('may lack every element', async () => {
    const { service } = await serve([jobAnswer('')]);
    const nothing = { name: null, state: null, creationTime: null, endTime: null, tasks: [] };
    expect(await service.getJob(JOB, signal)).toMatchObject({ id: JOB, ...nothing });
  });

  test('about another job is none to the question', async () => {
    const { service } = await serve([jobAnswer(fields('502'))]);
    await expect(service.getJob(JOB, signal)).rejects.toMatchObject({
      code: 'unexpected-answer',
      hint: expect.stringContaining('service.jobsUrl'),
    });
  });

  test('names no job by what is no id, and none by an element of something else', async () => {
    const rows = ['', '<id>x</id>', '<id>9223372036854775808</id>', '<nodeType><id>5</id></nodeType>'];
    const { service } = await serve([listAnswer(...rows.map(row))]);
    expect(await service.listJobs(signal)).toEqual([]);
  });

  test('with very long texts, or very many tasks, costs no more than the limits', async () => {
    const tasks = Array.from(
      { length: 10_050 },
      (_, index) => `<SubmittedTaskInfoExt><id>${index + 1}</id></SubmittedTaskInfoExt>`,
    );
    const name = `<name>${'ü'.repeat(50_000)}</name>`;
    const { service } = await serve([jobAnswer(`${name}<tasks>${tasks.join('')}</tasks>`)]);
    const job = await service.getJob(JOB, signal);
    expect(job.tasks).toHaveLength(10_000);
    expect(job.name?.length).toBe(4_096);
  });

  test('from a wrong address says which key holds it', async () => {
    const { service } = await serve(['<html><title>no</title></html>']);
    await expect(service.listJobs(signal)).rejects.toMatchObject({ hint: expect.stringContaining('service.jobsUrl') });
  });
});

test('many jobs are read in slices', async () => {
  const rows = Array.from({ length: 20_000 }, (_, index) => row(`<id>${index + 1}</id><state>Finished</state>`));
  const { service } = await serve([listAnswer(...rows)]);
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 5);
  const jobs = await service.listJobs(signal);
  clearInterval(timer);
  expect(jobs.at(-1)?.id).toBe(jobId('20000'));
  expect(turns).toBeGreaterThan(2);
});
