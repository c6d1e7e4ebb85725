/** The agent over REST, from the configuration to the last byte. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, type TestContext } from 'vitest';
import type { ReleaseName } from '../../simulator/rest/releases.ts';
import { Place } from './e2e-place.ts';
import type { SandboxService } from './e2e-sandbox.ts';
import { until } from './e2e-until.ts';

export function configureRest(place: Place, sandbox: SandboxService): void {
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
export async function followOverRest(context: TestContext, release: ReleaseName): Promise<void> {
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
