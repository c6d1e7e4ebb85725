/** The view of an agent whose working directory was removed. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { quietJob, requestOf } from '../../support/e2e-job.ts';
import { Program } from '../../support/e2e-program.ts';

it('the view comes, and searches, where the directory that the agent was started in is gone', async (context) => {
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
  const headers = { authorization: `Bearer ${fs.readFileSync(path.join(place.state, 'view-token'), 'utf8').trim()}` };
  const found = await fetch(`http://127.0.0.1:${port}/api/find?text=a.*b&regex=1`, { headers });
  expect([found.status, await found.text()]).toEqual([200, expect.stringContaining('axxb')]);
  expect(agent.logged('cannot listen for the view')).toEqual([]);
});
