import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onlyTask } from '../../support/only-task.ts';
import { startSandbox, until } from '../support.ts';

const node = (script: string, ...argv: string[]) => [process.execPath, '-e', script, ...argv];

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('jobs', () => {
  it('are real processes in real directories', async () => {
    const sandbox = await startSandbox();
    const job = await sandbox.submitJob({
      jobId: '501',
      tasks: [
        {
          taskId: '9001',
          command: node(
            "const { writeFileSync } = require('fs'); process.stdout.write('out ' + process.env.WHO); process.stderr.write('err');" +
              "writeFileSync('task.log', process.argv[1]); writeFileSync('steps', process.cwd()); process.exitCode = 3",
            'an argument; with $shell `signs`',
          ),
          env: { WHO: 'č' },
          liveFiles: { progress: 'steps' },
        },
        { command: node('process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)') },
      ],
    });
    await job.finished();
    const [first, second] = job.tasks;
    expect(first).toMatchObject({ taskId: '9001', state: 'ended', exit: { code: 3, signal: null } });
    expect(second?.exit).toEqual({ code: null, signal: 'SIGTERM' });
    expect(first?.specificationId).not.toBe('9001');
    expect(first?.directory).toBe(join(sandbox.directory, 'jobs', '501', first?.specificationId ?? ''));
    const content = async (name: 'stdout' | 'stderr' | 'log' | 'progress') =>
      readFile(first?.files[name] ?? '', 'utf8');
    expect(await content('stdout')).toBe('out č');
    expect(await content('stderr')).toBe('err');
    expect(await content('log')).toBe('an argument; with $shell `signs`');
    expect(await content('progress')).toBe(first?.directory);
    expect(sandbox.job('501')).toBe(job);
  });

  it('end with everything they started when the sandbox closes', async () => {
    const sandbox = await startSandbox();
    const child = 'setInterval(() => {}, 1000)';
    const parent = (after: string) =>
      `const { spawn } = require('child_process'); const child = spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'ignore' });` +
      `require('fs').writeFileSync('pid', String(child.pid)); ${after}`;
    const job = await sandbox.submitJob({
      tasks: [
        { command: node(parent(child)) },
        // This one leaves its child behind.
        { command: node(parent('child.unref(); process.exit(0)')) },
      ],
    });
    const pids: number[] = [];
    for (const task of job.tasks) {
      const file = join(task.directory, 'pid');
      await until(async () => (await readFile(file, 'utf8').catch(() => '')) !== '');
      pids.push(Number(await readFile(file, 'utf8')), task.pid ?? 0);
    }
    await job.tasks[1]?.exited();
    expect(job.tasks[0]?.state).toBe('running');
    expect(pids.slice(0, 3).every(isAlive)).toBe(true);
    await sandbox.close();
    await until(() => !pids.some(isAlive));
    expect(job.tasks[0]?.exit).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('wait while they are held', async () => {
    const sandbox = await startSandbox();
    const job = await sandbox.submitJob({ held: true, tasks: [{ command: node('console.log(1)') }] });
    expect(onlyTask(job).state).toBe('no-process');
    await job.submit();
    expect(await onlyTask(job).exited()).toEqual({ code: 0, signal: null });
    await expect(job.submit()).rejects.toThrow('already submitted');
  });

  it('refuse ids that are none or taken, and programs that do not exist', async () => {
    const sandbox = await startSandbox();
    await sandbox.submitJob({ jobId: '+7', tasks: [{ taskId: '1' }] });
    expect(sandbox.jobs.map(({ jobId }) => jobId)).toEqual(['7']);
    await expect(sandbox.submitJob({ jobId: '07', tasks: [] })).rejects.toThrow('job 7 exists already');
    await expect(sandbox.submitJob({ jobId: 'x', tasks: [] })).rejects.toThrow('"x" is no 64-bit number');
    await expect(sandbox.submitJob({ tasks: [{ taskId: '1' }] })).rejects.toThrow('task 1 exists already');
    await expect(sandbox.submitJob({ tasks: [{ command: ['/no/such/program'] }] })).rejects.toThrow(
      'cannot be started',
    );
    await expect(sandbox.submitJob({ tasks: [{ command: [] }] })).rejects.toThrow('is empty');
  });

  it('append to their output, so that it can be truncated under them', async () => {
    const sandbox = await startSandbox();
    const script =
      "const fs = require('fs'); fs.writeSync(1, 'before'); fs.writeFileSync('ready', '');" +
      "const timer = setInterval(() => { if (fs.existsSync('go')) { fs.writeSync(1, 'after'); clearInterval(timer); } }, 5)";
    const task = onlyTask(await sandbox.submitJob({ tasks: [{ command: node(script) }] }));
    await until(() =>
      readFile(join(task.directory, 'ready')).then(
        () => true,
        () => false,
      ),
    );
    await writeFile(task.files.stdout, '');
    await writeFile(join(task.directory, 'go'), '');
    await task.exited();
    expect(await readFile(task.files.stdout, 'utf8')).toBe('after');
  });
});
