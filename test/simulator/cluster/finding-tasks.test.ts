/** By what a client without JobManagementWs can find the tasks of a job (docs/servers.md 10.2), over real HTTP. */
import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { SandboxHabits } from '../../../simulator/habits.ts';
import { onlyTask } from '../../support/only-task.ts';
import { call, faultText, jobAnd, offsets, signIn, startSandbox } from '../support.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const LIST = 'ListChangedFilesForJob';
/** Behind every end, and within reach of every server. */
const PROBE = 2 ** 40;

/** A job of two tasks, each with a stdout. */
async function startJob(habits: Partial<SandboxHabits> = {}) {
  const sandbox = await startSandbox({ habits });
  const session = await signIn(sandbox);
  const tasks = [{ taskId: '9001' }, { taskId: '9007' }];
  const job = await sandbox.submitJob({ jobId: '501', tasks });
  for (const { files } of job.tasks) await writeFile(files.stdout, 'some output');
  const probe = async (ids: readonly string[], offset = PROBE) => {
    const asked = offsets(...ids.map((id) => [id, 'StandardOutputFile', offset] as const));
    const answer = await call(sandbox, PARTS, jobAnd('501', session, asked));
    const found = [...answer.body.matchAll(/<content \/>.*?<submittedTaskInfoId>(.*?)<\/submittedTaskInfoId>/g)];
    return answer.status === 200 ? found.map(([, id = '']) => id).sort() : faultText(answer);
  };
  const listed = async () => {
    const { body } = await call(sandbox, LIST, jobAnd('501', session));
    return [...body.matchAll(/<string>\/(-?\d+)\/stdout.txt<\/string>/g)].map(([, id = '']) => id);
  };
  return { sandbox, job, probe, listed };
}

describe('ids of specifications, which listed names begin with', () => {
  it.each([
    [0, ['9001', '9007']],
    [-17, ['8984', '8990']],
    [100_000, ['109001', '109007']],
  ])('differ from those of the tasks by %d', async (specificationIds, expected) => {
    const { listed } = await startJob({ specificationIds });
    expect(await listed()).toEqual(expected);
  });

  it('have no rule, and lie far from those of the tasks', async () => {
    const { listed } = await startJob({ specificationIds: 'irregular' });
    const ids = (await listed()).map(Number);
    expect(ids).toHaveLength(2);
    for (const id of ids) expect(Math.min(Math.abs(id - 9001), Math.abs(id - 9007))).toBeGreaterThan(1_000_000);
    expect((ids[1] ?? 0) - (ids[0] ?? 0)).not.toBe(6);
  });

  it('stay within 64 bits', async () => {
    const { sandbox } = await startJob({ specificationIds: 1 });
    const task = onlyTask(await sandbox.submitJob({ tasks: [{ taskId: '9223372036854775807' }] }));
    expect(task.specificationId).toBe('-9223372036854775808');
  });

  it('are the next free numbers by default, and the ones that are asked for', async () => {
    const { listed, sandbox } = await startJob();
    expect(await listed()).toEqual(['501', '502']);
    const { tasks } = await sandbox.submitJob({ tasks: [{ specificationId: '7' }, {}] });
    expect(tasks.map(({ specificationId }) => specificationId)).toEqual(['7', '506']);
  });
});

describe('a probe behind every end', () => {
  it('proves the tasks that have the file, among hundreds that are none', async () => {
    const { probe, job } = await startJob();
    const candidates = Array.from({ length: 400 }, (_, index) => String(8800 + index));
    expect(await probe(candidates)).toEqual(['9001', '9007']);
    await job.tasks[1]?.run.end('Finished');
    expect(await probe(['9001', '9007'])).toEqual(['9001', '9007']);
  });

  it('fails for an id that is not one of the job where the server looks for each', async () => {
    const { sandbox, probe } = await startJob({ unknownTask: 'fault' });
    await sandbox.submitJob({ tasks: [{ taskId: '77' }] });
    for (const foreign of ['9002', '77']) {
      expect(await probe(['9001', foreign])).toBe(`Specified task with id ${foreign} does not exist.`);
    }
    expect(await probe(['9001', '9007'])).toEqual(['9001', '9007']);
  });

  it('fails with more entries than the server allows', async () => {
    const { probe } = await startJob({ maxPartsEntries: 5 });
    expect(await probe(['1', '2', '3', '4', '5', '9001'])).toBe('The request asks for 6 files, 5 are allowed.');
    expect(await probe(['1', '2', '3', '4', '9001'])).toEqual(['9001']);
  });

  it('fails from further on than a file can reach', async () => {
    const { probe } = await startJob();
    expect(await probe(['9001'], 2 ** 44)).toEqual(['9001']);
    expect(await probe(['9001'], 2 ** 44 + 1)).toContain('EINVAL');
    expect(await probe(['9002'], 2 ** 50)).toEqual([]);
  });

  it('finds a task once its file is there', async () => {
    const { sandbox, probe } = await startJob();
    const job = await sandbox.addTask('501', { taskId: '9003', startDelayMs: 86_400_000 });
    expect(await probe(['9003'])).toEqual([]);
    await job.start();
    expect(await probe(['9003'])).toEqual([]);
    await writeFile(job.tasks[2]?.files.stdout ?? '', '');
    expect(await probe(['9003'])).toEqual(['9003']);
  });
});
