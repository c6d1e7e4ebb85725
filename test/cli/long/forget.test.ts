/** `agent forget` that is killed. What it refuses, and what a link names: test/agent/retention, test/system/remove-tree. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import type { JobId } from '../../../src/job.ts';
import type { Store } from '../../../src/store/store.ts';
import { restConfig } from '../../config/files.ts';
import { Program } from '../../support/e2e-program.ts';
import { SILENT } from '../../support/errors.ts';

const JOB = '501' as JobId;
const FILES = 20_000;

it('agent forget continues after a kill in the middle: the job stays known until its last file is gone', async () => {
  const { directory, file, config } = await restConfig();
  const inState = <T>(work: (store: Store) => T): T => {
    const { store, close } = openOwnStore(config, SILENT);
    try {
      return work(store);
    } finally {
      close();
    }
  };
  const jobs = () => inState((store) => store.jobs.all().map(({ jobId }) => jobId));
  inState((store) => {
    const request = { jobId: JOB, tasks: [], files: [], results: false, settleAfterMs: null } as const;
    store.jobs.watch({ ...request, source: 'command' }, 0);
    store.jobs.setState(JOB, 'settled');
  });
  const results = path.join(config.mirror.directory, JOB, 'results');
  fs.mkdirSync(results, { recursive: true });
  for (let name = 0; name < FILES; name += 1) fs.writeFileSync(path.join(results, String(name)), '');
  const aside = path.join(config.mirror.directory, `${JOB}.removed`);
  // Within the process, between two steps of its own: a process beside it may see the directory only when all is gone.
  const kill = `import fs from 'node:fs';
    const out = ${JSON.stringify(path.join(aside, 'results/'))};
    let first;
    setInterval(() => {
      if (first === undefined && !fs.existsSync(out)) return;
      first ??= out + fs.readdirSync(out)[0];
      if (!fs.existsSync(first)) process.kill(process.pid, 'SIGKILL');
    }, 1).unref();`;
  const node = [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(kill)}`];
  const args = ['forget', JOB, '--delete-files', '--yes', '--unproven', '-c', file];
  expect((await new Program(args, { cwd: directory, node }).ended).signal).toBe('SIGKILL');
  expect([fs.existsSync(aside), jobs()]).toEqual([true, [JOB]]);
  expect((await new Program(args, { cwd: directory }).ended).code).toBe(0);
  expect([fs.readdirSync(config.mirror.directory), jobs()]).toEqual([[], []]);
});
