/** The agent over REST of a release with other operations and another decoder, and what only REST brings. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import type { ReleaseName } from '../../../simulator/rest/releases.ts';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';
import { until } from '../../support/e2e-until.ts';

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

/** run, watch, sync and verify over a release; nothing is lost, asked for too often or shown that is secret. */
async function followOverRest(context: TestContext, release: ReleaseName): Promise<void> {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits({ release });
  configureRest(place, sandbox);
  const job = await sandbox.submit({ tasks: [{}, {}] });
  const [first, second] = job.tasks;
  if (first === undefined || second === undefined) throw new Error('no tasks');
  const mirrorOf = (taskId: string, file: string) => path.join(place.mirror, job.jobId, 'live', taskId, `${file}.log`);
  // Cut by the edges of blocks, and a byte-order mark, which one decoder swallows.
  const text = '\ufeffpříliš žluťoučký kůň 😀\r\n\t"quoted" \\ \u001b[0m\n'.repeat(300);

  // run: the tasks are found by the job's number alone.
  const running = await place.run();
  expect(await place.agent('watch', job.jobId)).toMatchObject({ code: 0 });
  fs.writeFileSync(first.files.stdout, text);
  fs.writeFileSync(second.files.stderr, text.slice(3));
  await until('the mirrors', () =>
    [
      [mirrorOf(first.taskId, 'stdout'), text],
      [mirrorOf(second.taskId, 'stderr'), text.slice(3)],
    ].every(([file = '', content]) => fs.existsSync(file) && fs.readFileSync(file, 'utf8') === content),
  );

  // The session is lost, and the output goes on.
  await sandbox.expireSessions();
  fs.appendFileSync(first.files.stdout, 'more\n');
  await until('what was added', () => fs.readFileSync(mirrorOf(first.taskId, 'stdout'), 'utf8') === `${text}more\n`);
  running.signal('SIGTERM');
  await running.ended;

  // sync: results come, but those that the release never hands out, where no transfer by SSH brings them either.
  fs.writeFileSync(path.join(path.dirname(first.files.stdout), 'result.bin'), Buffer.alloc(100_000, 0xfe));
  fs.writeFileSync(path.join(path.dirname(first.files.stdout), 'číslo.bin'), 'x');
  const synced = await place.agent('sync', job.jobId);
  expect([synced.code, synced.stdout]).toEqual([1, expect.stringContaining('1 failed')]);
  const results = path.join(place.mirror, job.jobId, 'results', first.specificationId);
  expect(fs.readFileSync(path.join(results, 'result.bin'))).toEqual(Buffer.alloc(100_000, 0xfe));
  const { stdout: shown } = await place.agent('status', job.jobId);
  expect(shown).toContain('hands out no file with the character');
  expect(shown).toContain('only a transfer by SSH brings the file itself');
  expect(shown).toContain('by the service, not directly: ');
  const verified = await place.agent('verify', job.jobId);
  expect(verified).toMatchObject({ code: 1, stdout: expect.stringMatching(/MISSING.*číslo\.bin/) });
  expect(verified.stdout).not.toContain('DIFFERS');

  // A byte that somebody changed is found.
  const mirror = mirrorOf(first.taskId, 'stdout');
  const bytes = fs.readFileSync(mirror);
  bytes[bytes.length - 2] = 0x21;
  fs.writeFileSync(mirror, bytes);
  expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 1 });

  // No request was longer than the release takes, nobody was signed in more often than was needed, no code is anywhere.
  const { httpRefusals, signIns } = await sandbox.counters();
  expect(httpRefusals).toBeLessThan(10);
  expect(signIns).toBeLessThan(12);
  const code = await sandbox.sessionCode();
  for (const said of [running.stdout, running.stderr, synced.stderr]) expect(said).not.toContain(code);
}

it.concurrent('run, watch, sync and verify over release 3.1', (context) => followOverRest(context, '3.1'));

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

it.concurrent('run, watch, sync and verify', (context) => followOverRest(context, '6.4'));
