import fs from 'node:fs';
import { expect, it } from 'vitest';
import { mirroredJob } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';
import { linkOf, View, viewedJob } from '../../support/e2e-view.ts';

it('the view follows a mirror byte for byte, over a rewrite and over a kill of the agent', async (context) => {
  const { place, agent, view, content, file, task, mirror } = await viewedJob(context);
  const stdout = task.files.stdout;
  const page = view.look(`${file}&jobs=1&service=1`);
  fs.appendFileSync(stdout, 'first příliš\n'.repeat(1_000));
  const { size } = fs.statSync(stdout);
  const { version } = await page.until('length', ({ bytes }) => bytes === size);
  const seen = await view.bytes(`raw?${content}&version=${version}`);
  expect(seen.equals(fs.readFileSync(mirror)) && seen.equals(fs.readFileSync(stdout))).toBe(true);
  await page.until('jobs', ({ jobs }) => jobs[0]?.liveBytes === size);
  await page.until('figures', (figures) => figures?.some(({ calls }) => Object.keys(calls).length > 0) ?? false);

  agent.signal('SIGKILL');
  await agent.ended;
  fs.appendFileSync(stdout, 'while it was dead\n');
  const again = await place.run();
  await again.logs('view listening');
  const more = fs.statSync(stdout).size;
  await page.until('length', ({ bytes }) => bytes === more);
  fs.writeFileSync(stdout, 'rewritten\n');
  await page.until('length', (now) => now.version === 'g2' && now.bytes === 10);
  expect((await view.ask(`lines?${content}&version=${version}`)).status).toBe(409);
  expect((await view.bytes(`lines?${content}`)).toString()).toBe('rewritten\n');
  const { former } = JSON.parse((await view.bytes(`generations?${content}`)).toString());
  expect((await view.bytes(`raw?${content}&version=${former[0].version}`)).length).toBe(more);
});

it('the view is served by the command where no agent serves it, beside one or without', async (context) => {
  const { place, job, mirror, agent, stdout } = await mirroredJob(context, Buffer.from('mirrored\n'));
  const [task] = job.tasks;
  const content = `job=${job.jobId}&task=${task?.taskId}&file=stdout`;
  const beside = place.start(['view', '--no-open']);
  const view = new View(await linkOf(beside), place);
  expect((await view.bytes(`lines?${content}`)).toString()).toBe('mirrored\n');
  const page = view.look(`file=${job.jobId}/${task?.taskId}/stdout`);
  fs.appendFileSync(stdout, 'more\n');
  await page.until('length', ({ bytes }) => bytes === 14);
  expect((await page.until('agent')).running).toBe(true);
  agent.signal('SIGTERM');
  await agent.ended;
  await page.until('agent', ({ running }) => !running);
  expect((await view.bytes(`lines?${content}`)).equals(fs.readFileSync(mirror))).toBe(true);
  beside.signal('SIGINT');
  expect(await beside.ended).toMatchObject({ code: 0 });
  await expect(view.ask(`lines?${content}`)).rejects.toThrow();
  const alone = place.start(['view']);
  await linkOf(alone);
  await until('the word', () => alone.stderr.includes('no agent is running'));
  alone.signal('SIGTERM');
  await alone.ended;
});
