/** `agent results`: what a program reads of each result of a job. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import type { ResultRow } from '../../../src/store/rows.ts';
import { MINIMAL } from '../../config/files.ts';
import { Program } from '../../support/e2e-program.ts';
import { SILENT } from '../../support/errors.ts';
import { NEW_ROW } from '../../support/live-place.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const jobId = '501' as JobId;

const row = (name: string, state: ResultRow['state'], more: Partial<ResultRow> = {}): ResultRow => ({
  ...{ jobId, name, state, reason: null, bytes: null, sha256: null, live: null, listedAt: 1, fetchedAt: null },
  ...{ stamp: null, stampProven: false, hangs: 0, dueAt: 0, intervalMs: 0 },
  ...more,
});

it('agent results names path, size and checksum, and which results are complete', async () => {
  const directory = temporaryDirectory();
  const configFile = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret\n', { mode: 0o600 });
  fs.writeFileSync(configFile, `${MINIMAL}mirror: {directory: mirror}\nstate: {directory: state}\n`);
  const { store, close } = openOwnStore(await loadConfig(configFile), SILENT);
  const request = { jobId, tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
  store.transaction(() => store.jobs.watch({ ...request, source: 'command' }, 0));
  store.results.saveAll([
    row('/9001/a.dat', 'synced', { bytes: 4, sha256: 'ab', fetchedAt: 2 }),
    row('/9001/b.dat', 'in-flux', { bytes: 5, sha256: 'cd', fetchedAt: 3 }),
    row('/9001/d.txt', 'linked', { live: '9001/stdout', fetchedAt: 4 }),
    row('/9001/../c', 'refused', { reason: 'it has the part ..' }),
  ]);
  store.liveFiles.save({ ...NEW_ROW, jobId, taskId: '9001' as TaskId, file: 'stdout', position: 7 });
  close();
  const agent = async (...args: string[]) => await new Program([...args, '-c', configFile], { cwd: directory }).ended;
  const { code, stdout } = await agent('results', jobId, '--json');
  const fileOf = (name: string) => path.join(directory, 'mirror/501/results/9001', name);
  const none = { bytes: null, sha256: null, fetchedAt: null };
  expect({ code, ...JSON.parse(stdout) }).toEqual({
    ...{ code: 0, version: 2, jobId, state: 'watched' },
    results: [
      {
        ...{ name: '/9001/../c', path: null, complete: false, state: 'refused', ...none },
        ...{ listedAt: 1, reason: 'it has the part ..' },
      },
      {
        ...{ name: '/9001/a.dat', path: fileOf('a.dat'), complete: true, state: 'synced', bytes: 4, sha256: 'ab' },
        ...{ fetchedAt: 2, listedAt: 1, reason: null },
      },
      {
        ...{ name: '/9001/b.dat', path: fileOf('b.dat'), complete: false, state: 'in-flux', bytes: 5, sha256: 'cd' },
        ...{ fetchedAt: 3, listedAt: 1, reason: null },
      },
      {
        ...{ name: '/9001/d.txt', path: fileOf('d.txt'), complete: true, state: 'linked', bytes: 7, sha256: null },
        ...{ fetchedAt: 4, listedAt: 1, reason: null },
      },
    ],
  });
  expect((await agent('results', jobId)).stdout.split('\n')[1]).toBe(`synced           4 B  ${fileOf('a.dat')}`);
  expect((await agent('results', '999')).code).toBe(7);
});
