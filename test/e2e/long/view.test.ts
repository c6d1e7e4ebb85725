import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { mirroredJob, requestOf } from '../../support/e2e-job.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { linkIn, linkOf, View, viewedJob } from '../../support/e2e-view.ts';
import { freePort } from '../../support/free-port.ts';

it('follows a mirror byte for byte, over a rewrite and over a kill of the agent', PATIENCE, async (context) => {
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

it('is where a changed configuration says, and what is wrong with that is said', PATIENCE, async (context) => {
  const { place, agent, view, sandbox, job, content } = await viewedJob(context);
  const port = await freePort();
  const listen = `0.0.0.0:${port}`;
  place.configure(sandbox, { watch: [requestOf(job)], view: { listen } });
  expect(await agent.logs('view not encrypted', { err: '0.0.0.0' })).toMatchObject({ level: 'warn' });
  await until('the other address', () => agent.logged('view listening', { address: `127.0.0.1:${port}/` }).length > 0);
  await expect(view.ask(`lines?${content}`)).rejects.toThrow();
  const other = new View(linkIn(await place.agent('view')), place);
  expect((await other.ask(`lines?${content}`)).status).toBe(200);
  const checked = (await place.agent('check')).stdout;
  expect(checked).toContain(`http://127.0.0.1:${port}/ answers; its token is in ${place.state}/view-token`);
  expect(checked).toContain('without encryption');
  fs.chmodSync(path.join(place.state, 'view-token'), 0o644);
  expect(await place.agent('check')).toMatchObject({ code: 3, stdout: expect.stringContaining('chmod 600') });
});

it('is served by the command where no agent serves it, beside one or without', PATIENCE, async (context) => {
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
