import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { mirroredJob, quietJob, requestOf } from '../../support/e2e-job.ts';
import type { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

const tokenIn = ({ state }: Place) => fs.readFileSync(path.join(state, 'view-token'), 'utf8').trim();

/** What a program that has the token gets of a view. */
async function bytesOf(place: Place, origin: string, address: string): Promise<Buffer> {
  const headers = { authorization: `Bearer ${tokenIn(place)}` };
  const answer = await fetch(`${origin}/api/${address}`, { headers });
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${await answer.text()}`);
  return Buffer.from(await answer.arrayBuffer());
}

/** The origin of the link that a program printed. */
const originOf = (program: Program) =>
  until('the link', () => /^(http:\/\/[^/\s]+)\/\S*\?ticket=\S+$/m.exec(program.stdout)?.[1]);

it('the view is served by the command where no agent serves it, beside one or without', async (context) => {
  const { place, job, mirror, agent } = await mirroredJob(context, Buffer.from('mirrored\n'));
  const lines = `lines?job=${job.jobId}&task=${job.tasks[0]?.taskId}&file=stdout`;
  const beside = place.start(['view', '--no-open']);
  const origin = await originOf(beside);
  expect((await bytesOf(place, origin, lines)).toString()).toBe('mirrored\n');
  agent.signal('SIGTERM');
  await agent.ended;
  expect((await bytesOf(place, origin, lines)).equals(fs.readFileSync(mirror))).toBe(true);
  beside.signal('SIGINT');
  expect(await beside.ended).toMatchObject({ code: 0 });
  // One link, with a ticket for the token.
  expect(beside.stdout.match(/http:\/\/\S+/g)).toHaveLength(1);
  expect(beside.stdout + beside.stderr).not.toContain(tokenIn(place));
  await expect(bytesOf(place, origin, lines)).rejects.toThrow();
  const alone = place.start(['view']);
  await originOf(alone);
  await until('the word', () => alone.stderr.includes('no agent is running'));
  alone.signal('SIGTERM');
  await alone.ended;
});

it('comes, and searches, where the directory that the agent was started in is gone', async (context) => {
  const { place, sandbox, job, task } = await quietJob(context);
  fs.writeFileSync(task.files.stdout, 'a line with axxb\n');
  const port = await freePort();
  place.configure(sandbox, { watch: [requestOf(job)], view: { listen: `127.0.0.1:${port}` } });
  const gone = path.join(place.directory, 'gone');
  fs.mkdirSync(gone);
  const agent = new Program(['run', '-c', place.configFile], { cwd: gone });
  context.onTestFinished(async () => void (await agent.kill()));
  await agent.logs('agent ready');
  fs.rmdirSync(gone);
  await agent.logs('view listening');
  await place.mirrored(job, 'stdout');
  const found = await bytesOf(place, `http://127.0.0.1:${port}`, 'find?text=a.*b&regex=1');
  expect(found.toString()).toContain('axxb');
  expect(agent.logged('cannot listen for the view')).toEqual([]);
});
