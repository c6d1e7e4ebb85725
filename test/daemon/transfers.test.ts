/** The loop that releases temporary keys. */
import { expect, test, vi } from 'vitest';
import type { Remote, TransferMethod } from '../../src/agent/ports/server.ts';
import { Transfers } from '../../src/daemon/transfers.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { Secrets } from '../../src/redact.ts';
import { Store } from '../../src/store/store.ts';
import { SILENT } from '../support/errors.ts';
import { HeldClock } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const HOUR_MS = 3_600_000;

test('the agent releases a key seconds after its job is over, hardly reads the state while there is none, and logs a failure once', async () => {
  const clock = new HeldClock();
  const store = new Store({ directory: temporaryDirectory(), service: 'model', owner: true, now: clock.now });
  const request = { jobId: JOB, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch(request, clock.now());
  const open = new Set<string>();
  const remote: Partial<Remote> = {
    getTransferMethod: async () => {
      open.add('public');
      const credentials = { username: 'hpc', privateKey: 'private', publicKey: 'public' };
      return { serverHostname: 'h', sharedBasepath: '/', protocol: 'SftpScp', credentials } as TransferMethod;
    },
    endTransfer: async (_jobId, _method, signal) => {
      if (isHanging) await new Promise((_, reject) => signal.addEventListener('abort', reject));
      if (isAway) throw new JobtailError('unreachable', 'connection refused');
      open.delete('public');
    },
  };
  let isAway = false;
  let isHanging = false;
  const warnings: string[] = [];
  const log = { ...SILENT, warn: (_: object, what: string) => void warnings.push(what) };
  const transfers = new Transfers({ store, log, secrets: new Secrets(), clock });
  const reads = vi.spyOn(store.leases, 'allOpen');
  const endKeepUp = transfers.keepUp(remote as Remote);
  await clock.pass(HOUR_MS);
  expect(reads.mock.calls.length).toBeLessThanOrEqual(61);
  await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
  await clock.pass(1_000);
  expect(open.size).toBe(1);
  store.jobs.setState(JOB, 'settled');
  await clock.pass(5_000);
  expect(open.size).toBe(0);
  // A failure is logged once, until a key was released.
  for (let times = 1; times <= 2; times += 1) {
    isAway = true;
    await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
    await clock.pass(10 * 60_000);
    expect([warnings.length, open.size]).toEqual([times, 1]);
    isAway = false;
    // The pause of a key doubles, up to an hour.
    await clock.pass(HOUR_MS);
    expect(open.size).toBe(0);
  }
  await endKeepUp();
  // A job that goes to another agent waits for no service that hangs: so long, and for the grace of a call.
  await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
  isHanging = true;
  const left = vi.fn();
  const leaving = transfers.end(JOB).then(left, left);
  await clock.pass(9_000);
  expect(left).not.toHaveBeenCalled();
  await clock.pass(1_000);
  expect(left).toHaveBeenCalled();
  await leaving;
  store.close();
});
