/** A file that is truncated, and a mirror that is repaired: what the log, `agent status` and the metrics show of it. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { freePort } from '../../support/free-port.ts';

it('are logged once with their reason, counted, and shown', PATIENCE, async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  const port = await freePort();
  place.configure(sandbox, {
    watch: [requestOf(job)],
    results: { enabled: false },
    metrics: { listen: `127.0.0.1:${port}` },
  });
  for (const file of ['stdout', 'stderr'] as const) fs.writeFileSync(task.files[file], 'a line\n'.repeat(100));
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await place.mirrored(job, 'stderr');

  fs.writeFileSync(task.files.stdout, 'b\n');
  fs.truncateSync(place.mirrorOf(job.jobId, task.taskId, 'stderr'), 70);
  await place.mirrored(job, 'stdout');
  await place.mirrored(job, 'stderr');
  await until('both to be committed', async () => {
    const files = (await place.status()).jobs[0]?.files ?? [];
    return files.some(({ file, generation, bytes }) => file === 'stdout' && generation === 2 && bytes === 2);
  });

  const said = agent.log.filter(({ msg }) => /^(remote file|mirror repaired)/.test(String(msg)));
  const file = { jobId: job.jobId, taskId: task.taskId };
  expect(said.sort((a, b) => String(a['file']).localeCompare(String(b['file'])))).toMatchObject([
    { ...file, level: 'warn', msg: 'mirror repaired', file: 'stderr', offset: 70, generation: 1 },
    { ...file, level: 'info', msg: 'remote file truncated', file: 'stdout', offset: 444, generation: 2 },
  ]);
  const reasons = [
    'the mirror had 70 of the 700 bytes that were committed',
    'it has at most 444 bytes, the mirror has 700',
  ];
  expect(said.map(({ reason }) => reason)).toEqual(reasons);

  const shown = await place.agent('status', job.jobId);
  expect(shown.stdout).toMatch(
    /stdout: remote file truncated .*: it has at most 444 bytes, the mirror has 700 \(generation 2\)/,
  );
  expect(shown.stdout).toMatch(/stderr: mirror repaired .*: the mirror had 70 of the 700 bytes/);
  const report = JSON.parse((await place.agent('status', job.jobId, '--json')).stdout);
  expect(report.jobs[0].files).toMatchObject([
    { file: 'stdout', mismatches: [{ kind: 'truncated', at: 444, generation: 2, reason: reasons[1] }] },
    { file: 'stderr', mismatches: [{ kind: 'mirror-damaged', at: 70, generation: 1, reason: reasons[0] }] },
    { file: 'log', mismatches: [] },
    { file: 'progress', mismatches: [] },
  ]);
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(metrics).toContain('jobtail_mismatches_total{kind="truncated"} 1\n');
  expect(metrics).toContain('jobtail_mismatches_total{kind="mirror-damaged"} 1\n');
  expect(metrics).toContain('jobtail_mismatches_total{kind="rewritten"} 0\n');
});
