/** What the log says, once each: of a service that wants to be left alone, and of what is odd about one job. */
import { expect, it, vi } from 'vitest';
import { Failures } from '../../../src/agent/failures.ts';
import { JobtailError } from '../../../src/errors.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent, startJob } from '../../support/composed-agent.ts';
import { JOB, STDOUT } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, failing, ModelRemote } from '../../support/model-remote.ts';

const HOUR_MS = 3_600_000;

it('a long wait is said once for all jobs, and again when another one follows it', () => {
  const said: string[] = [];
  const note = (fields: object, message?: string) => said.push(`${message} ${JSON.stringify(fields)}`);
  const failures = new Failures({ error: note, warn: note, info: note, debug: () => {} });
  const busy = new JobtailError('rate-limited', 'too many calls');
  failures.failed('job 1', busy);
  expect(said.splice(0)).toEqual([expect.not.stringContaining('retryAt')]);

  for (const job of [1, 2, 3]) failures.failed(`job ${job}`, busy, HOUR_MS + job * 1_000);
  expect(said.splice(0)).toEqual([expect.stringMatching(/^operation failed .*"retryAt":"1970-01-01T01:00:01.000Z"/)]);
  // A minute later at most, it is the same one.
  for (const ms of [61_000, 61_001]) failures.failed('job 1', busy, HOUR_MS + ms);
  failures.failed('job 1', busy);
  expect(said.splice(0)).toEqual([expect.stringContaining('"retryAt":"1970-01-01T01:01:01.001Z"')]);

  const { ofService } = failures;
  failures.failed('job 2', busy);
  failures.worked('job 1', ofService);
  expect(said).toEqual([]);
  failures.worked('job 1', failures.ofService);
  expect(said.splice(0)).toEqual([expect.stringMatching(/^operation recovered .*"failures":8}$/)]);
  failures.failed('job 1', busy, HOUR_MS);
  expect(said).toEqual([expect.stringContaining('"retryAt":"1970-01-01T01:00:00.000Z"')]);
});

it('an early start, entries that were not requested and each reason of failed results are said once', async () => {
  const { clock, remote, report, agent, store, warnings, said } = await startJob({ state: 'Running' });
  report('Running', { submitTime: at(clock.now()), startTime: at(clock.now() - HOUR_MS / 6) });
  for (const name of ['9001/a', '9001/b', '9001/c']) remote.files.set(name, Buffer.from('a line\n'));
  const read = remote.readParts.bind(remote);
  let refused = 2;
  remote.readParts = async (...call) => ({ ...(await read(...call)), refused: call[0] === JOB ? refused : 0 });
  let reason = '';
  remote.onDownload = (path) => {
    if (reason !== '' && /[ab]\.txt$/.test(path)) throw new JobtailError('fault', reason);
  };
  const after = async (change: () => void) => {
    warnings.length = 0;
    change();
    await clock.pass(HOUR_MS);
    return warnings.map((line) => line.replace(/ \(.*/, ''));
  };
  reason = 'status 500';
  const failed = (text: string) => `results failed jobId=${JOB} files=2 reason="${text}" file=/9001/a.txt`;
  const early = `job started before its submission jobId=${JOB} earlyMs=${HOUR_MS / 6}`;
  const first = await after(() => agent.refresh());
  const unrequested = `unrequested entries ignored jobId=${JOB} refused=`;
  expect(first.filter((line) => !line.startsWith(unrequested)).sort()).toEqual([early, failed(reason)]);
  const counts = first.flatMap((line) => (line.startsWith(unrequested) ? Number(line.slice(unrequested.length)) : []));
  expect(counts).toContain(2);
  expect(store.jobs.get(JOB)?.refused).toBe(counts.reduce((sum, count) => sum + count, 0));
  refused = 0;
  expect(await after(() => (reason = 'status 501'))).toEqual([failed('status 501')]);
  expect(said).toContainEqual(expect.stringMatching(/^results synced jobId=501 listed=4 fetched=1 changed=1 failed=2/));
  expect(await after(() => (reason = ''))).toEqual([]);
  said.length = 0;
  expect(await after(() => {})).toEqual([]);
  expect(said).toEqual([]);
  expect(await after(() => (reason = 'status 501'))).toEqual([failed('status 501')]);
});

it('a state that cannot be read is said once, and that it can be again', async () => {
  const { agent, store, warnings, said } = await startAgent(new ModelRemote(), { clock: new HeldClock() });
  const read = vi.spyOn(store.jobs, 'changedSince').mockImplementation(() => {
    throw new JobtailError('store', 'it cannot be read');
  });
  for (const _ of [1, 2]) agent.refresh();
  read.mockRestore();
  for (const _ of [1, 2]) agent.refresh();
  expect([warnings.length, said]).toEqual([1, [expect.stringMatching(/^operation recovered/)]]);
});

it('the state that a quiet poll could not write is said once, and that the next poll could', async () => {
  const { clock, store, warnings, said, grown } = await startJob({ tasks: [STDOUT.taskId], results: false });
  await grown();
  const end = vi.spyOn(store.jobs, 'endRun').mockImplementation(() => {
    throw new JobtailError('store', 'it is locked');
  });
  await clock.passUntil('the failure', () => warnings.length > 0);
  said.length = 0;
  // Meanwhile, the agent reads its state again and again.
  await clock.pass(10 * 60_000);
  expect([warnings.length, said]).toEqual([1, []]);
  end.mockRestore();
  await clock.passUntil('its end', () => said.length > 0);
  expect([warnings.length, said]).toEqual([
    ...[1, [expect.stringMatching(/^operation recovered scope="the state" code=store failures=\d+$/)]],
  ]);
});

it('a search that fails is said once, and that it works again', async () => {
  const { clock, remote, warnings, said, job } = await startJob({ results: false });
  const read = vi.spyOn(remote, 'readParts').mockRejectedValue(new JobtailError('unexpected-answer', 'no part'));
  await clock.pass(HOUR_MS);
  expect(warnings).toEqual([expect.stringContaining(`scope="job ${JOB} search"`)]);
  expect(job()?.error?.code).toBe('unexpected-answer');
  read.mockRestore();
  await clock.pass(HOUR_MS);
  expect(job()?.error).toBeNull();
  expect(said.filter((line) => line.startsWith('operation recovered'))).toHaveLength(1);
});

it('an outage that a sync of results met is no failure of the job once the service lists its files, unless it fails again', async () => {
  const { clock, remote, job } = await startJob({ tasks: [STDOUT.taskId], text: undefined });
  const away = failing('unreachable', 'connection refused');
  remote.onListing = away;
  remote.onDownload = (_path, signal) => sleep(clock, 3 * HOUR_MS, signal).then(away);
  remote.files.set('11/a', Buffer.from('a result'));
  const error = () => job()?.error?.code;
  await clock.passUntil('the outage', () => error() === 'unreachable', HOUR_MS);
  remote.onListing = () => {};
  await clock.passUntil('the listing', () => error() === undefined, HOUR_MS);
  await clock.passUntil('the failure of the download', () => error() === 'unreachable', 4 * HOUR_MS);
  await clock.pass(HOUR_MS);
  expect(error()).toBe('unreachable');
});
