/** `agent forget`: what it removes from the state and from the disk, and what it refuses. */
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { takeConfigured } from '../../../src/agent/configured-jobs.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import type { WatchState } from '../../../src/store/rows.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { MINIMAL } from '../../config/files.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';
import { SILENT } from '../../support/errors.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

let directory = '';
let configFile = '';
const at = (...parts: string[]) => path.join(directory, 'mirror', ...parts);

beforeEach(() => {
  directory = temporaryDirectory();
  configFile = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret\n', { mode: 0o600 });
  fs.writeFileSync(
    configFile,
    `${MINIMAL}mirror: {directory: ${directory}/mirror}\nstate: {directory: ${directory}/state}\n`,
  );
});

/** Jobs with one live file of four bytes and one result. */
async function withJobs(jobs: Readonly<Record<string, WatchState>>) {
  const owned = openOwnStore(await loadConfig(configFile), SILENT);
  for (const [jobId, state] of Object.entries(jobs)) putJob(owned.store, jobId as JobId, state);
  owned.close();
}

function putJob(store: Store, jobId: JobId, state: WatchState): void {
  const tasks = ['9001' as TaskId];
  const request = { jobId, tasks, files: LIVE_FILE_NAMES.slice(0, 1), results: true, settleAfterMs: null };
  store.transaction(() => store.jobs.watch({ ...request, source: 'command' }, 0));
  const [row] = store.liveFiles.ofJob(jobId);
  if (row === undefined) throw new Error('no live file');
  store.transaction(() => store.liveFiles.save({ ...row, position: 4, verified: 4 }));
  store.jobs.endRun(jobId, { polledAt: Date.now(), grownAt: null, refused: 0, failures: 0, error: null });
  store.jobs.setState(jobId, state);
  const times = { listedAt: 1, fetchedAt: 1, dueAt: 1, intervalMs: 1, hangs: 0, stamp: null, stampProven: false };
  const synced = { state: 'synced', reason: null, bytes: 4, sha256: 'x', live: null } as const;
  store.results.saveAll([{ jobId, name: '/out/a.dat', ...synced, ...times }]);
  for (const [name, text] of [
    ['live/9001/stdout.log', 'four'],
    ['results/out/a.dat', 'data'],
  ] as const) {
    fs.mkdirSync(path.dirname(path.join(path.dirname(store.directory), 'mirror', jobId, name)), { recursive: true });
    fs.writeFileSync(path.join(path.dirname(store.directory), 'mirror', jobId, name), text);
  }
}

const jobsOf = async () => {
  const owned = openOwnStore(await loadConfig(configFile), SILENT);
  const jobs = owned.store.jobs.all().map(({ jobId }) => jobId);
  owned.close();
  return jobs;
};

const agent = (...args: string[]) => new Program([...args, '-c', configFile], { cwd: directory });
const forget = (...args: string[]) => agent('forget', ...args).ended;

describe('agent forget', () => {
  it('deletes the files of the job, and no file behind a link', async () => {
    await withJobs({ 501: 'settled', 502: 'ended' });
    fs.writeFileSync(path.join(directory, 'precious'), 'x');
    fs.symlinkSync(at('502'), at('501/results/neighbour'));
    fs.symlinkSync(path.join(directory, 'precious'), at('501/results/file'));
    const { code, stdout } = await forget('501', '--delete-files', '--yes');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'job 501 is removed; 4 files deleted (8 B)\n' });
    expect(fs.readdirSync(at('.'))).toEqual(['502']);
    expect(fs.readdirSync(at('502'))).toEqual(['live', 'results']);
    expect(fs.existsSync(path.join(directory, 'precious'))).toBe(true);
  });

  it('refuses a link in the place of the directory of the job, and keeps the job', async () => {
    await withJobs({ 501: 'settled' });
    fs.renameSync(at('501'), path.join(directory, 'moved'));
    fs.symlinkSync(path.join(directory, 'moved'), at('501'));
    expect((await forget('501', '--delete-files', '--yes')).code).toBe(8);
    expect(fs.readdirSync(path.join(directory, 'moved'))).toEqual(['live', 'results']);
    expect(await jobsOf()).toEqual(['501']);
  });

  it('continues after a kill in the middle: the job stays known until its last file is gone', async () => {
    await withJobs({ 501: 'settled' });
    const files = 20_000;
    for (let file = 0; file < files; file += 1) fs.writeFileSync(at(`501/results/out/${file}`), '');
    const aside = at('501.removed');
    // Within the process, between two steps of its own: a process beside it may see the directory only when all is gone.
    const kill = `import fs from 'node:fs';
      const out = ${JSON.stringify(path.join(aside, 'results/out/'))};
      let first;
      setInterval(() => {
        if (first === undefined && !fs.existsSync(out)) return;
        first ??= out + fs.readdirSync(out)[0];
        if (!fs.existsSync(first)) process.kill(process.pid, 'SIGKILL');
      }, 1).unref();`;
    const node = [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(kill)}`];
    const killed = new Program(['forget', '501', '--delete-files', '--yes', '-c', configFile], {
      cwd: directory,
      node,
    });
    expect((await killed.ended).signal).toBe('SIGKILL');
    expect(fs.existsSync(aside)).toBe(true);
    expect(await jobsOf()).toEqual(['501']);
    expect((await forget('501', '--delete-files', '--yes')).code).toBe(0);
    expect(fs.readdirSync(at('.'))).toEqual([]);
    expect(await jobsOf()).toEqual([]);
  });
});

/** It looks at the state when a test calls `refresh`, so that the test sees the request before the agent. */
const AT_REFRESH = { sections: 'poll: {maxIntervalSeconds: 3600}\n' };

describe('beside a running agent', () => {
  it('the agent removes the job with its files, and no rule and no configuration follows it again', async () => {
    const { store, mirrorDirectory, said, restart } = await startAgent(new ModelRemote(), AT_REFRESH);
    putJob(store, '501' as JobId, 'settled');
    const config = path.join(path.dirname(mirrorDirectory), 'config.yaml');
    const command = new Program(['forget', '501', '--delete-files', '--yes', '-c', config], { cwd: mirrorDirectory });
    await until('the agent to be asked', () => store.requests.open('forget').length > 0);
    const agent = await restart();
    agent.refresh();
    expect(await command.ended).toMatchObject({ code: 0, stdout: 'job 501 is removed; 2 files deleted (8 B)\n' });
    expect(said.join('\n')).toMatch(/job removed.*501/);
    expect(fs.existsSync(path.join(mirrorDirectory, '501'))).toBe(false);
    expect(store.jobs.get('501' as JobId)).toBeUndefined();
    expect(store.jobs.known()).toEqual(new Set(['501']));
    const request = { jobId: '501' as JobId, tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null };
    takeConfigured([{ ...request, source: 'config' }], { store, log: SILENT, clock: systemClock });
    expect(store.jobs.all()).toEqual([]);
  });

  it('a job that was watched meanwhile stays, and the command names the reason', async () => {
    const { agent, store, mirrorDirectory } = await startAgent(new ModelRemote(), AT_REFRESH);
    putJob(store, '501' as JobId, 'settled');
    const config = path.join(path.dirname(mirrorDirectory), 'config.yaml');
    const command = new Program(['forget', '501', '--yes', '-c', config], { cwd: mirrorDirectory });
    await until('the agent to be asked', () => store.requests.open('forget').length > 0);
    store.jobs.resume('501' as JobId);
    agent.refresh();
    const { code, stderr } = await command.ended;
    expect(code).toBe(2);
    expect(stderr).toContain('job 501 is followed');
  });
});
