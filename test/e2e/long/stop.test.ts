/** How the agent ends, and that there is only one. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';

it.concurrent('a second signal ends it at once, and nothing is lost by it', async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'hello\n');
  place.configure(sandbox, { watch: [requestOf(job)] });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  // Both signals wait while it is held, so that the second one finds the first one's work begun and not done.
  agent.signal('SIGSTOP');
  agent.signal('SIGTERM');
  agent.signal('SIGINT');
  agent.signal('SIGCONT');
  // The kernel delivers either of them first.
  expect([130, 143]).toContain((await agent.ended).code);
  fs.appendFileSync(task.files.stdout, 'and on\n');
  await place.run();
  await place.mirrored(job, 'stdout');
});

it.concurrent('a second agent on the same state names the first one and leaves it alone', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox);
  const first = await place.run();
  const second = await place.agent('run');
  expect(second).toMatchObject({ code: 4, signal: null, stdout: '' });
  expect(second.stderr).toContain(`another agent works on ${place.state} (pid ${first.pid})`);
  expect(second.stderr).toContain('its own state.directory');
  expect(first.end).toBeUndefined();
});
