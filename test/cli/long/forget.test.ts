/** `agent forget`: what it removes from the state and from the disk, and what it refuses. */
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { MINIMAL } from '../../config/files.ts';
import { Program } from '../../support/e2e-program.ts';
import { SILENT } from '../../support/errors.ts';
import { NEW_RESULT } from '../../support/live-place.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';
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

/** A settled job with one live file of four bytes and one result. */
async function withJob(polledAt = Date.now()) {
  const { store, close } = openOwnStore(await loadConfig(configFile), SILENT);
  const jobId = '501' as JobId;
  const tasks = ['9001' as TaskId];
  const request = { jobId, tasks, files: LIVE_FILE_NAMES.slice(0, 1), results: true, settleAfterMs: null };
  store.transaction(() => store.jobs.watch({ ...request, source: 'command' }, 0));
  const [row] = store.liveFiles.ofJob(jobId);
  if (row === undefined) throw new Error('no live file');
  store.transaction(() => store.liveFiles.save({ ...row, position: 4, verified: 4 }));
  store.jobs.endRun(jobId, { polledAt, grownAt: null, refused: 0, failures: 0, error: null });
  store.jobs.setState(jobId, 'settled');
  store.results.saveAll([{ ...NEW_RESULT, jobId, name: '/out/a.dat' }]);
  for (const [name, text] of [
    ['live/9001/stdout.log', 'four'],
    ['results/out/a.dat', 'data'],
  ] as const) {
    fs.mkdirSync(path.dirname(path.join(path.dirname(store.directory), 'mirror', jobId, name)), { recursive: true });
    fs.writeFileSync(path.join(path.dirname(store.directory), 'mirror', jobId, name), text);
  }
  close();
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
  it('--older-than removes nothing while the clock is a day or more from that of the service', async () => {
    await withJob(Date.now() - 31 * 86_400_000);
    const owned = openOwnStore(await loadConfig(configFile), SILENT);
    owned.store.capabilities.set('clock', String(-31 * 86_400_000));
    owned.close();
    const { code, stderr } = await forget('--older-than', '30d', '--delete-files', '--yes');
    expect(code).toBe(8);
    expect(stderr).toContain('the clock of this machine is 31 d ahead of the service');
    expect(await jobsOf()).toEqual(['501']);
    expect((await forget('501', '--yes')).code).toBe(0);
  });

  it('continues after a kill in the middle: the job stays known until its last file is gone', async () => {
    await withJob();
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

  it('asks on a terminal', needs('script'), async (context: TestContext) => {
    await withJob();
    const terminal = new Terminal(['forget', '501', '-c', configFile], { context, cwd: directory, columns: 200 });
    await terminal.shows('remove 1 job (501) from the state, and keep the files? [y/N]');
    terminal.type('n\r');
    expect(await terminal.ended).toBe(1);
    expect(await jobsOf()).toEqual(['501']);
  });
});
