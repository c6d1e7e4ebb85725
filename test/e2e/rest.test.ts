/** The agent over REST, from the configuration to the last byte: the commands are those of SOAP, and so is what they do. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../support/e2e-place.ts';
import type { SandboxService } from '../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

/** Each of the two ways of every operation, and both decoders. */
const RELEASES = ['3.1', '6.4'] as const;

function configure(place: Place, sandbox: SandboxService): void {
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

it.concurrent.for(RELEASES)('run, watch, sync and verify over release %s', PATIENCE, async (release, context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits({ release });
  configure(place, sandbox);
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
});

it.concurrent(
  'a server that is upgraded under the running agent: nothing is lost, and the log says what changed',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release: '3.1' });
    configure(place, sandbox);
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
      /not as it was before: ListChangedFilesForJob: GET /.test(running.stderr + running.stdout),
    );
    running.signal('SIGTERM');
    await running.ended;
    expect(await place.agent('sync', job.jobId)).toMatchObject({ code: 0 });
    await place.verified(job.jobId);
  },
);

it.concurrent(
  'a cluster of FirecREST has results that are text; others are kept as they were',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release: '6.4' });
    configure(place, sandbox);
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

it.concurrent.for(RELEASES)(
  'a number of no job is refused, and unwatched, over release %s',
  PATIENCE,
  async (release, context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ release });
    configure(place, sandbox);
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
