/** Calls that commands request of the agent: each is made once, and answered with its outcome. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { Failures } from '../../../src/agent/failures.ts';
import type { Verification } from '../../../src/agent/pass/verification.ts';
import type { JobService } from '../../../src/agent/ports/server.ts';
import { ServiceRequests } from '../../../src/agent/requests/service-requests.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { JobId } from '../../../src/job.ts';
import { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { until } from '../../support/e2e-until.ts';
import { JOB, newState } from '../../support/engine.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const VERIFICATION: Verification = { files: [], cluster: null };

function setUp(service: Partial<JobService> | null = {}) {
  const directory = newState(temporaryDirectory());
  const store = new Store({ directory, service: 'x', owner: true, now: Date.now });
  onTestFinished(() => store.close());
  const warnings: object[] = [];
  const note = (fields: object) => void warnings.push(fields);
  const log = { debug: note, info: note, warn: note, error: note };
  const calls: unknown[] = [];
  const signals: AbortSignal[] = [];
  const held = { isHeld: false };
  /** Notes a call; where calls are held, it hangs until its signal fires. */
  const made = async (signal: AbortSignal, ...call: unknown[]) => {
    calls.push(call);
    signals.push(signal);
    if (!held.isHeld) return;
    await new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(new JobtailError('aborted', 'it was stopped')));
    });
  };
  const jobService: JobService = {
    listJobs: async (signal) => made(signal, 'list').then(() => []),
    getJob: async (jobId, signal) => made(signal, 'get', jobId).then(() => ({ id: jobId }) as never),
    ...service,
  };
  const context = {
    ...{ store, log, clock: systemClock, failures: new Failures(log), mirrorDirectory: directory },
    catchUp: async () => {},
  };
  const newAgent = () =>
    new ServiceRequests(context, {
      jobService: service === null ? null : jobService,
      verify: async (jobId, isComplete, signal) => {
        await made(signal, 'verify', jobId, isComplete);
        return VERIFICATION;
      },
    });
  const answerOf = (id: number) => store.requests.get(id)?.answer ?? null;
  const ask = (kind: 'report' | 'verify' | 'verify-complete', jobId: JobId | null = JOB) =>
    store.requests.add(jobId, kind, Date.now());
  const answered = async (requests: ServiceRequests, id: number) => {
    requests.serve();
    await until('the answer', () => answerOf(id) !== null);
    return JSON.parse(answerOf(id) ?? '');
  };
  return { store, warnings, calls, signals, held, newAgent, answerOf, ask, answered };
}

it.each([
  ['report', null, ['list'], { jobs: [] }],
  ['report', JOB, ['get', JOB], { jobs: [{ id: JOB }] }],
  ['verify', JOB, ['verify', JOB, false], VERIFICATION],
  ['verify-complete', JOB, ['verify', JOB, true], VERIFICATION],
] as const)('the answer to %s of %s is what the call returns', async (kind, jobId, call, answer) => {
  const { calls, newAgent, ask, answered } = setUp();
  expect(await answered(newAgent(), ask(kind, jobId))).toEqual(answer);
  expect(calls).toEqual([call]);
});

it('without a job service no job is reported, and a job is verified all the same', async () => {
  const { newAgent, ask, answered } = setUp(null);
  const requests = newAgent();
  expect(await answered(requests, ask('report', null))).toEqual({ jobs: [] });
  expect(await answered(requests, ask('verify'))).toEqual(VERIFICATION);
});

it('a call that fails is answered with its error, code and hint, and the next request is served', async () => {
  const getJob = vi
    .fn()
    .mockRejectedValueOnce(new JobtailError('fault', 'no such job', { hint: 'look at the number' }));
  const { newAgent, ask, answered } = setUp({ getJob: getJob.mockResolvedValue({ id: JOB }) });
  const requests = newAgent();
  const refusal = { error: 'no such job', code: 'fault', hint: 'look at the number' };
  expect(await answered(requests, ask('report'))).toEqual(refusal);
  expect(await answered(requests, ask('report'))).toEqual({ jobs: [{ id: JOB }] });
});

it('a call is made once, and stopped when its command goes away', async () => {
  const { store, calls, signals, held, newAgent, ask } = setUp();
  const requests = newAgent();
  held.isHeld = true;
  const [first] = [ask('report', null), ask('verify')];
  for (let times = 0; times < 3; times++) requests.serve();
  expect(calls).toHaveLength(2);
  store.requests.remove(first ?? 0);
  requests.serve();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  await requests.stop();
});

it('a stop waits for its calls, answers none, and the next agent serves them', async () => {
  const { calls, signals, held, newAgent, answerOf, ask, answered, store, warnings } = setUp();
  const requests = newAgent();
  held.isHeld = true;
  const id = ask('verify');
  requests.serve();
  const answer = vi.spyOn(store.requests, 'answer');
  const stopped = requests.stop();
  expect(signals[0]?.aborted).toBe(true);
  await stopped;
  expect([answerOf(id), answer.mock.calls]).toEqual([null, []]);
  // Nothing of it is left.
  requests.serve();
  expect(calls).toHaveLength(2);
  await requests.stop();
  held.isHeld = false;
  expect(await answered(newAgent(), id)).toEqual(VERIFICATION);
  expect(warnings).toEqual([]);
});

it('an answer that cannot be stored is a failure of the state, and the request is served again', async () => {
  const { newAgent, ask, answered, store, warnings, calls, answerOf } = setUp();
  const requests = newAgent();
  vi.spyOn(store.requests, 'answer').mockImplementationOnce(() => {
    throw new JobtailError('store', 'it is locked');
  });
  const id = ask('verify');
  requests.serve();
  await until('the failure', () => warnings.length > 0);
  expect(warnings).toEqual([expect.objectContaining({ scope: 'the state', code: 'store' })]);
  expect(answerOf(id)).toBeNull();
  expect(await answered(requests, id)).toEqual(VERIFICATION);
  expect(calls).toHaveLength(2);
});
