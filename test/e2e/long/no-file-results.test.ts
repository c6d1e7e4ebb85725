/** Results that are links to no file, over REST: the job ends as any other, by the words of the service alone. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';

const LINKS = 'mkdir run_2; echo x > run_2/out.dat; ln -s run_2 latest; ln -s nowhere dead; echo done';

it.concurrent.for(['5.0', '6.3'] as const)(
  'links to a directory and to nothing, over release %s',
  async (release, context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release });
    const { service, auth } = sandbox.configuration('rest');
    const config = {
      service: { ...service, requestsPerMinute: 100_000 },
      auth,
      mirror: { directory: place.mirror },
      state: { directory: place.state },
      poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
      results: { intervalSeconds: 1, transfer: 'service' },
    };
    place.writeConfig(JSON.stringify(config));
    const { jobId, tasks } = await sandbox.submit({ tasks: [{ command: ['sh', '-c', LINKS] }] });
    await sandbox.finished(jobId);
    const ended = await place.agent('wait', jobId, '--timeout', '150s');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const status = await place.agent('status', jobId);
    expect(status.stdout).toMatch(/1 left out: it is a link to a directory \(.*latest\)/);
    expect(status.stdout).toMatch(/1 left out: it is a link to a missing file \(.*dead\)/);
    const verified = await place.agent('verify', jobId);
    expect(verified.stdout.match(/^IRREGULAR .*$/gm)).toHaveLength(2);
    expect(verified).toMatchObject({ code: 0 });
    // A file that may not be read is named, and the others are here; root may read every file.
    if (process.getuid?.() === 0) return;
    fs.writeFileSync(`${tasks[0]?.directory}/secret`, 'x', { mode: 0o000 });
    expect(await place.agent('sync', jobId)).toMatchObject({ code: 1, stdout: expect.stringContaining('1 refused') });
  },
);
