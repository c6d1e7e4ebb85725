/** A named pipe among the results of a running job, on which the service hangs: the built agent goes on around it. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it(
  'a pipe stops neither other results nor live files once the service answers again, and status names it',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release: '5.0' });
    const { service, auth } = sandbox.configuration('rest');
    const config = {
      service: { ...service, timeoutSeconds: 2 },
      auth,
      mirror: { directory: place.mirror },
      state: { directory: place.state },
      poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
      results: { intervalSeconds: 1, transfer: 'soap' },
    };
    place.writeConfig(JSON.stringify(config));
    const { jobId, tasks } = await sandbox.submit({ tasks: [{}] });
    const [task] = tasks;
    if (task === undefined) throw new Error('no task');
    const there = path.dirname(task.files.stdout);
    const pipe = path.join(there, 'a pipe');
    execFileSync('mkfifo', [pipe]);
    fs.writeFileSync(path.join(there, 'z.dat'), 'z');
    await place.agent('watch', jobId);
    await place.run();
    await until('the service hangs', async () =>
      (await place.agent('status', jobId)).stdout.includes('the service sent no data'),
    );
    const { stdout } = await place.agent('status', jobId);
    expect(stdout).toMatch(
      /1 failed: the service sent no data for 2 s: the file may be a named pipe or very large; requested again .*a pipe/,
    );
    // A program of the job writes into the pipe, and the service answers again.
    fs.writeFileSync(pipe, 'written at last');
    fs.writeFileSync(task.files.stdout, 'goes on\n');
    const mirror = path.join(place.mirror, jobId, 'live', task.taskId, 'stdout.log');
    const result = path.join(place.mirror, jobId, 'results', task.specificationId, 'z.dat');
    await until('the mirror goes on', () => fs.existsSync(mirror) && fs.readFileSync(mirror, 'utf8') === 'goes on\n');
    await until('the other result', () => fs.existsSync(result) && fs.readFileSync(result, 'utf8') === 'z');
  },
);
