/** A job that is followed by its number alone, while no agent runs: passes, and what is said of the server. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-by-number.ts';
import { PATIENCE } from '../../support/e2e-until.ts';

describe.concurrent('sync while no agent runs', PATIENCE, () => {
  it.for([true, false])('finds the tasks first (unreported: %s)', async (unreported, context) => {
    const { place, sandbox, job, mirrors } = await placeWithJob(context, {
      unreported,
      habits: { specificationIds: 0 },
    });
    for (const { files, taskId } of job.tasks) fs.writeFileSync(files.stdout, `from ${taskId}\n`);
    expect(await place.agent('watch', job.jobId)).toMatchObject({ code: 0, stdout: '' });
    const synced = await place.agent('sync', job.jobId);
    expect(synced).toMatchObject({ code: 0, stdout: expect.stringContaining('8 live files, 8 verified') });
    for (const mirror of mirrors()) expect(fs.existsSync(mirror)).toBe(true);
    await place.mirrored(job, 'stdout');
    if (unreported) return;
    // Who tells of jobs is gone, and another task came.
    const grown = await sandbox.addTask(job.jobId, {});
    fs.writeFileSync(grown.tasks[2]?.files.stdout ?? '', 'late\n');
    await sandbox.setHabits({ jobService: false });
    const again = await place.agent('sync', job.jobId);
    expect(again).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`job service failed jobId=${job.jobId} `),
    });
    expect(again.stdout).toContain('12 live files, 12 verified');
  });

  it('says so if it finds none', async (context) => {
    const { place, job } = await placeWithJob(context, { unreported: true });
    expect(await place.agent('watch', job.jobId)).toMatchObject({ code: 0 });
    const synced = await place.agent('sync', job.jobId);
    expect(synced).toMatchObject({ code: 0, stderr: expect.stringContaining('no task found, no live files to copy') });
    expect(synced.stdout).toContain('0 live files');
  });
});

it.concurrent('check says which way they are found, and what would be better', PATIENCE, async (context) => {
  const { place, sandbox, job } = await placeWithJob(context, { unreported: true });
  for (const { files } of job.tasks) fs.writeFileSync(files.stdout, 'hello\n');
  const unreported = await place.agent('check', '--job', job.jobId);
  expect(unreported).toMatchObject({ code: 0, stderr: '' });
  expect(unreported.stdout).toContain('tasks are found by probes for their files, and job states are not reported');
  expect(unreported.stdout).toContain(`set service.jobsUrl to ${sandbox.jobsUrl}`);
  expect(unreported.stdout).toContain('not tested: no task of job');
  place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl } });
  const reported = await place.agent('check', '--job', job.jobId);
  expect(reported).toMatchObject({ code: 0 });
  expect(reported.stdout).toMatch(
    /jobs +JobManagementWs reports 1 job, 1 of them running, in \d+ ms: tasks and job states/,
  );
  expect(reported.stdout).toContain('2 of 8 are there');
  await sandbox.setHabits({ jobService: false });
  const gone = await place.agent('check', '--job', job.jobId);
  expect(gone).toMatchObject({ code: 6, stdout: expect.stringContaining('✗ jobs') });
});

it.concurrent('init takes the service that tells of jobs if it answers', PATIENCE, async (context) => {
  const { place, sandbox } = await placeWithJob(context);
  const { baseUrl, username, passwordFile } = sandbox;
  const flags = [
    '--url',
    `${baseUrl}/FileTransferWs`,
    '--namespace',
    'http://sandbox.example.org/',
    '--base-url',
    baseUrl,
  ];
  const user = ['--method', 'password', '--username', username, '--secret-file', passwordFile];
  const made = await place.plain(['init', '-o', 'reported.yaml', ...flags, ...user]);
  expect(made).toMatchObject({ code: 0 });
  expect(made.stdout).toContain('with JobManagementWs, which was found beside the file transfer');
  expect(fs.readFileSync(`${place.directory}/reported.yaml`, 'utf8')).toContain(`  jobsUrl: "${sandbox.jobsUrl}"\n`);
  await sandbox.setHabits({ jobService: false });
  expect(await place.plain(['init', '-o', 'unreported.yaml', ...flags, ...user])).toMatchObject({ code: 0 });
  expect(fs.readFileSync(`${place.directory}/unreported.yaml`, 'utf8')).toContain('  # jobsUrl: null');
});
