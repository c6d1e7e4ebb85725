/** A client that is not ours, on JobManagementWs of the sandbox by its WSDL: both operations over both versions of SOAP. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Sandbox } from '../../simulator/sandbox.ts';
import type { JobOperation } from '../../src/operations.ts';
import { signIn } from '../simulator/support.ts';
import { needs } from '../support/needs.ts';
import { ZeepClient, type ZeepOutcome } from './python.ts';
import { LONG_MAX, LONG_MIN, VERSIONS } from './service.ts';

const USERS = ['alice', 'bob'].map((username) => ({
  username,
  password: 'correct horse',
  token: `token of ${username}`,
}));
const NAME = 'měření & <b>"č. 7"</b> \u{1F600}';
const MESSAGE = 'uzel 7: <exit> & "konec"';
const BEGIN_MS = Date.UTC(2026, 1, 3, 4, 5, 6, 700);
/** As zeep tells the times of the jobs, all of which are made at one moment. */
const BEGIN = '2026-02-03T04:05:06.700000+00:00';
const END = '2026-02-03T04:05:16.700000+00:00';

const NOTHING = { project: null, allParameters: null };

const task = (id: string, members: Readonly<Record<string, unknown>>) => ({
  id,
  name: 'task 1',
  allocatedTime: null,
  allocatedCoreIds: null,
  startTime: null,
  endTime: null,
  errorMessage: null,
  allParameters: null,
  ...members,
});

const job = (id: string, members: Readonly<Record<string, unknown>>) => ({
  id,
  name: `job ${id}`,
  priority: 'Average',
  creationTime: BEGIN,
  submitTime: BEGIN,
  startTime: null,
  endTime: null,
  totalAllocatedTime: null,
  nodeType: expect.anything(),
  tasks: null,
  ...NOTHING,
  ...members,
});

const FAILED_TASK = task(LONG_MIN, {
  name: NAME,
  state: 'Failed',
  allocatedTime: 10,
  allocatedCoreIds: '0',
  startTime: BEGIN,
  endTime: END,
  errorMessage: MESSAGE,
});
const FAILED = job(LONG_MAX, {
  name: NAME,
  state: 'Failed',
  startTime: BEGIN,
  endTime: END,
  totalAllocatedTime: 10,
  tasks: { SubmittedTaskInfoExt: [FAILED_TASK] },
});
const HELD_TASK = task('70', { state: 'Configuring' });
const HELD = job('7', {
  state: 'Configuring',
  submitTime: null,
  tasks: { SubmittedTaskInfoExt: [HELD_TASK] },
});
const EMPTY = job('8', { state: 'WaitingForServiceAccount' });

describe('zeep as a client of JobManagementWs', needs('zeep'), () => {
  describe.each(VERSIONS)('over SOAP %s', (version) => {
    let directory: string;
    let sandbox: Sandbox;
    let zeep: ZeepClient;
    let sessionCode: string;

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'jobtail-contract-'));
      let nowMs = BEGIN_MS;
      sandbox = await Sandbox.start({ directory, users: USERS, clock: () => nowMs });
      const failed = await sandbox.submitJob({
        jobId: LONG_MAX,
        name: NAME,
        tasks: [{ taskId: LONG_MIN, name: NAME }],
      });
      await sandbox.submitJob({ jobId: '7', held: true, tasks: [{ taskId: '70' }] });
      const empty = await sandbox.submitJob({ jobId: '8', tasks: [] });
      empty.reportedState = 'WaitingForServiceAccount';
      await sandbox.submitJob({ jobId: '9', owner: 'bob', tasks: [] });
      nowMs += 10_000;
      await failed.end('Failed', MESSAGE);
      sessionCode = await signIn(sandbox, USERS[0]);
      zeep = new ZeepClient(`${sandbox.jobsUrl}?wsdl`, 'JobManagementWs');
    });
    afterAll(async () => {
      await zeep?.close();
      await sandbox?.close();
      await rm(directory, { recursive: true, force: true });
    });

    const call = (operation: JobOperation, fields: Readonly<Record<string, unknown>> = {}): Promise<ZeepOutcome> =>
      zeep.call({ operation, version, fields: { sessionCode, ...fields } });
    const getJob = (submittedJobInfoId: string) => call('GetCurrentInfoForJob', { submittedJobInfoId });

    test('GetCurrentInfoForJob', async () => {
      expect(await getJob(LONG_MAX)).toEqual({ result: FAILED });
      expect(await getJob('7')).toEqual({ result: HELD });
      expect(await getJob('8')).toEqual({ result: EMPTY });
    });

    test('ListJobsForCurrentUser', async () => {
      expect(await call('ListJobsForCurrentUser')).toEqual({ result: [FAILED, HELD, EMPTY] });
    });

    test('nil entries', async () => {
      sandbox.setHabits({ nilEntries: true });
      const held = { ...HELD, tasks: { SubmittedTaskInfoExt: [expect.objectContaining({ id: null }), HELD_TASK] } };
      const { result } = await call('ListJobsForCurrentUser');
      sandbox.setHabits({ nilEntries: false });
      const [first, , second] = result as readonly Readonly<Record<string, unknown>>[];
      // zeep tells a nil entry like one whose members are nil.
      expect(new Set(Object.values(first ?? {}))).toEqual(new Set([null]));
      expect(second).toEqual(held);
    });

    test('faults', async () => {
      const code = version === '1.1' ? 'soap:Server' : 'soap:Receiver';
      const message = 'Specified job with id -404 does not exist.';
      expect(await getJob('-404')).toEqual({ fault: { code, message } });
      const lost = { fault: { code, message: 'Session code x is not valid' } };
      expect(await call('ListJobsForCurrentUser', { sessionCode: 'x' })).toEqual(lost);
      expect((await getJob('9')).fault?.message).toBe(`Session code ${sessionCode} is not valid`);
    });
  });
});
