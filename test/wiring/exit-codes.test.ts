/** Each exit code of docs/json.md, from outside. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import type { JobId } from '../../src/job.ts';
import { quietJob, requestOf } from '../support/e2e-job.ts';
import type { Ended } from '../support/e2e-program.ts';
import { until } from '../support/e2e-until.ts';
import { jobOf } from '../support/model-remote.ts';
import { runDaemon } from './whole-daemon.ts';

const TABLE = fs.readFileSync(new URL('../../docs/json.md', import.meta.url), 'utf8').split('## Exit codes')[1] ?? '';
const CODES = [...TABLE.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
/** A defect is none that a test can ask for; a shell with a pipe has the other one. */
const ELSEWHERE: Readonly<Record<number, string>> = { 70: 'a defect', 141: 'test/e2e/long/machines.test.ts' };

test('each exit code is one that a command ends with', async (context) => {
  const { place, sandbox, job } = await quietJob(context);
  const sections = { service: { jobsUrl: sandbox.jobsUrl }, watch: [requestOf(job)] };
  place.configure(sandbox, sections);
  const at = (name: string, text: string) => {
    const file = path.join(place.directory, name);
    fs.writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const withKeys = (name: string, keys: Record<string, object>) => {
    const text = place.configText(sandbox, {
      ...sections,
      state: { directory: path.join(place.directory, name) },
      ...keys,
    });
    return at(`${name}.yaml`, text);
  };
  const wrong = withKeys('wrong', { auth: { passwordFile: at('no-password', 'wrong') } });
  const nowhere = withKeys('nowhere', { service: { ...sections.service, baseUrl: 'http://127.0.0.1:9' } });
  const blocked = withKeys('blocked', { state: { directory: path.join(at('a-file', ''), 'state') } });
  await runDaemon(place);
  await place.mirrored(job, 'stdout');

  // As the agent leaves jobs that are over.
  const store = openSharedStore(await loadConfig(place.configFile));
  for (const [jobId, state] of [
    ['602', 'Failed'],
    ['603', 'Canceled'],
  ] as const) {
    const order = { jobId: jobId as JobId, tasks: [], files: [], results: true, settleAfterMs: null } as const;
    store.transaction(() => {
      store.jobs.watch({ ...order, source: 'command' }, 1);
      store.jobInformation.save({ jobId: order.jobId, information: jobOf(jobId, state), since: 1, reportedAt: 1 });
      store.jobs.setState(order.jobId, 'settled');
    });
  }
  store.close();

  const stopped = async (signal: NodeJS.Signals) => {
    const waiting = place.start(['wait', job.jobId, '--tail']);
    fs.appendFileSync(job.tasks[0]?.files.stdout ?? '', 'a line\n');
    await until('its first line', async () => waiting.stdout.includes('a line'));
    process.kill(waiting.pid, signal);
    return await waiting.ended;
  };
  const any = place.agent('wait', '--any', '--json', '603', job.jobId);
  const timedOut = place.agent('wait', job.jobId, '--json', '--timeout', '0.1s');
  // All at the same time.
  const started: Readonly<Record<number, Promise<Ended>>> = {
    0: place.plain(['version']),
    1: place.plain(['grep', 'nowhere', job.jobId], { AGENT_CONFIG: place.configFile }),
    2: place.agent('status', '--nonsense'),
    3: place.startAt(at('bad.yaml', 'nonsense: 1'), ['status']).ended,
    4: place.agent('run'),
    5: place.startAt(wrong, ['jobs']).ended,
    6: place.startAt(nowhere, ['jobs']).ended,
    7: place.agent('unwatch', '999'),
    8: place.startAt(blocked, ['run']).ended,
    // Of several, the worst.
    10: place.agent('wait', '603', '602'),
    11: any,
    12: timedOut,
    130: stopped('SIGINT'),
    143: stopped('SIGTERM'),
  };
  const found = await Promise.all(Object.entries(started).map(async ([code, ended]) => [code, await ended] as const));
  const others = found.filter(([code, ended]) => ended.code !== Number(code));
  expect(others).toEqual([]);
  const shown = [...Object.keys(started), ...Object.keys(ELSEWHERE)].map(Number);
  expect(shown.sort((a, b) => a - b)).toEqual(CODES.sort((a, b) => a - b));
  expect(JSON.parse((await any).stdout)).toMatchObject({
    ...{ version: 2, exitCode: 11, timedOut: false, waitingFor: [job.jobId] },
    jobs: [{ jobId: '603', outcome: 'canceled', jobState: 'Canceled', state: 'settled' }],
  });
  const late = JSON.parse((await timedOut).stdout);
  expect(late).toMatchObject({ timedOut: true, jobs: [], waitingFor: [job.jobId] });
});
