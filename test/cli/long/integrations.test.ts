/** The snippets of docs/integrations.md, with the built program and a job that is settled. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it } from 'vitest';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import type { JobId, TaskId } from '../../../src/job.ts';
import { restConfig } from '../../config/files.ts';
import { SILENT } from '../../support/errors.ts';
import { jobOf } from '../../support/model-remote.ts';
import { needs, PYTHON } from '../../support/needs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const JOB = '501' as JobId;
const page = fs.readFileSync(`${ROOT}docs/integrations.md`, 'utf8');
const snippet = (language: string) => new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '';
const pythonSnippet = () => /```python\n(import json\n.*?)```/s.exec(page)?.[1] ?? '';
let directory = '';

beforeEach(() => {
  directory = temporaryDirectory();
});

async function withJob(jobState: string): Promise<void> {
  const { config } = await restConfig({}, directory);
  const { store, close } = openOwnStore(config, SILENT);
  const live = { tasks: ['9001' as TaskId], files: ['stdout'], settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch({ ...live, jobId: JOB, results: true }, 1);
  for (const row of store.liveFiles.ofJob(JOB))
    store.liveFiles.setComparison(row, { verified: 0, unverified: null, early: false });
  store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, jobState), since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, 'settled');
  close();
}

const run = (program: string, ...args: string[]) =>
  spawnSync(program, args, {
    cwd: directory,
    encoding: 'utf8',
    env: {
      ...process.env,
      PATH: `${ROOT}bin:${process.env['PATH']}`,
      AGENT_CONFIG: path.join(directory, 'config.yaml'),
    },
  });

it.each([
  ['Finished', 0, 'finished; when it settled, each file that you did not leave out was here'],
  ['Failed', 1, ''],
])('the step of a shell ends as a job that is %s', async (jobState, status, printed) => {
  await withJob(jobState);
  const ended = run('sh', '-c', snippet('sh'));
  expect(ended.stdout).toContain(printed);
  expect(ended.status).toBe(status);
});

it('the lines of Python read the state of a job', needs('python3'), async () => {
  await withJob('Finished');
  const ended = run(PYTHON, '-c', pythonSnippet());
  expect(ended.stderr).toBe('');
  expect(ended.stdout).toContain('Finished 0 results\n');
});
