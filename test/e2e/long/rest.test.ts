/** The agent over REST of a release with other operations and another decoder, and what only REST brings. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { configureRest, followOverRest } from '../../support/e2e-rest.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it.concurrent('run, watch, sync and verify over release 3.1', PATIENCE, (context) => followOverRest(context, '3.1'));

it.concurrent(
  'a cluster of FirecREST has results that are text; others are kept as they were',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release: '6.4' });
    configureRest(place, sandbox);
    const { jobId, tasks } = await sandbox.submit({ tasks: [{}] });
    const directory = path.dirname(tasks[0]?.files.stdout ?? '');
    fs.writeFileSync(path.join(directory, 'model.bin'), Buffer.alloc(1_000, 0xfe));
    expect(await place.agent('watch', jobId)).toMatchObject({ code: 0 });
    expect(await place.agent('sync', jobId)).toMatchObject({ code: 0 });

    await sandbox.setHabits({ fileAccess: 'firecrest' });
    fs.writeFileSync(path.join(directory, 'model.bin'), Buffer.alloc(2_000, 0xfd));
    fs.writeFileSync(path.join(directory, 'words.txt'), 'žluťoučký kůň');
    await place.run();
    const said = async () => (await place.agent('status', jobId)).stdout;
    await until('what is not the file', async () => (await said()).includes('perhaps not the file'));
    expect(await said()).toContain('FirecREST');
    const results = path.join(place.mirror, jobId, 'results', tasks[0]?.specificationId ?? '');
    expect(fs.readFileSync(path.join(results, 'model.bin'))).toEqual(Buffer.alloc(1_000, 0xfe));
    const words = path.join(results, 'words.txt');
    await until('text', () => fs.existsSync(words) && fs.readFileSync(words, 'utf8') === 'žluťoučký kůň');
  },
);

it.concurrent.for(['3.1', '6.3', '6.4'] as const)(
  'a number of no job is refused, and unwatched, over release %s',
  PATIENCE,
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
    const notWatched = { code: 0, stdout: `job ${missing} is not watched\n`, stderr: '' };
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
