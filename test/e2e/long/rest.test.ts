/** The agent over REST of several releases: jobs that are not there. */
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';

function configureRest(place: Place, sandbox: SandboxService): void {
  const { service, auth } = sandbox.configuration('rest');
  const config = {
    service: { ...service, requestsPerMinute: 100_000 },
    auth,
    mirror: { directory: place.mirror },
    state: { directory: place.state },
    poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
    results: { intervalSeconds: 1 },
    logging: { level: 'debug' },
  };
  place.writeConfig(JSON.stringify(config));
}

it.concurrent.for(['3.1', '6.3', '6.4'] as const)(
  'a number of no job is refused, and unwatched, over release %s',
  async (release, context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release });
    configureRest(place, sandbox);
    const running = await place.run();
    const { jobId } = await sandbox.submit({ tasks: [{}] });
    const missing = `${jobId}99`;

    expect(await place.agent('watch', missing)).toMatchObject({
      code: 7,
      stdout: '',
      stderr: expect.stringContaining(`the service has no job ${missing}`),
    });
    expect((await place.status()).jobs).toEqual([]);
    const notWatched = { code: 7, stdout: '', stderr: expect.stringContaining(`job ${missing} is not watched`) };
    expect(await place.agent('unwatch', missing)).toMatchObject(notWatched);
    expect(await place.agent('unwatch', missing, '--now')).toMatchObject(notWatched);

    // Neither is the job of another user followed: the session is good, whatever the status is.
    const foreign = await sandbox.submit({ owner: 'bob', tasks: [{}] });
    const { signIns } = await sandbox.counters();
    expect(await place.agent('watch', foreign.jobId)).toMatchObject({ code: 7, stdout: '' });
    expect((await sandbox.counters()).signIns - signIns).toBeLessThanOrEqual(1);
    expect((await place.status()).jobs).toEqual([]);

    // Where it cannot be known, it is watched; then unwatch ends it, though the service refuses the last pass.
    await sandbox.fault({ kind: 'http', status: 503, operation: 'GetCurrentInfoForJob' });
    expect(await place.agent('watch', missing, '--no-wait')).toMatchObject({ code: 0 });
    await sandbox.clearFaults();
    const ended = await place.agent('unwatch', missing);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain(`the service has no job ${missing}: there is no last pass`);
    expect((await place.status()).jobs).toEqual([]);
    expect(await place.agent('watch', jobId)).toMatchObject({ code: 0 });
    running.signal('SIGTERM');
    await running.ended;
  },
);
