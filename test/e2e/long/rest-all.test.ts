/** The agent over REST: the commands are those of SOAP, and so is what they do. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { configureRest, followOverRest } from '../../support/e2e-rest.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it.concurrent('run, watch, sync and verify', PATIENCE, (context) => followOverRest(context, '6.4'));

it.concurrent(
  'a server that is upgraded under the running agent: nothing is lost, and the log says what changed',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release: '3.1' });
    configureRest(place, sandbox);
    const job = await sandbox.submit({ tasks: [{}] });
    const [task] = job.tasks;
    if (task === undefined) throw new Error('no task');
    const running = await place.run();
    expect(await place.agent('watch', job.jobId)).toMatchObject({ code: 0 });
    const mirror = place.mirrorOf(job.jobId, task.taskId, 'stdout');
    fs.writeFileSync(task.files.stdout, 'before: žluť\n');
    await until('the mirror', () => fs.existsSync(mirror) && fs.readFileSync(mirror, 'utf8') === 'before: žluť\n');
    await sandbox.setHabits({ release: '6.3' });
    fs.appendFileSync(task.files.stdout, 'after: kůň\n');
    await until('the rest', () => fs.readFileSync(mirror, 'utf8') === 'before: žluť\nafter: kůň\n');
    await until('the listing', () =>
      /ListChangedFilesForJob: GET .*server capabilities changed/.test(running.stderr + running.stdout),
    );
    running.signal('SIGTERM');
    await running.ended;
    expect(await place.agent('sync', job.jobId)).toMatchObject({ code: 0 });
    await place.verified(job.jobId);
  },
);
