/** The state of the agent when it is gone or locked: no byte of a mirror suffers. Other losses are simulated (test/virtual). */
import fs from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { mirroredJob, requestOf } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';

/** Not UTF-8 here and there, more than one overlap long, and whole at its end. */
const CONTENT = Buffer.concat(
  Array.from({ length: 40 }, (_, line) =>
    Buffer.concat([Buffer.from(`${line} Příliš žluťoučký kůň`), Buffer.from([0xff, 0]), Buffer.from(' pěl ódy\n')]),
  ),
);

/** The job grew; the mirror does too, in place, and nothing is lost, repeated, or kept as a generation. */
async function expectItGoesOn(
  { place, job, stdout, mirror }: Pick<Awaited<ReturnType<typeof mirroredJob>>, 'place' | 'job' | 'stdout' | 'mirror'>,
  inode: number,
) {
  await place.mirrored(job, 'stdout');
  expect(fs.readFileSync(mirror).equals(fs.readFileSync(stdout))).toBe(true);
  expect(fs.statSync(mirror).ino).toBe(inode);
  expect(fs.readdirSync(path.dirname(mirror)).filter((name) => name.startsWith('stdout'))).toEqual(['stdout.log']);
  const { size } = fs.statSync(stdout);
  await until('the job to be in the state, with all that is mirrored', async () =>
    (await place.status()).jobs[0]?.files.some(({ file, bytes }) => file === 'stdout' && bytes === size),
  );
  expect((await place.status()).jobs[0]?.files.map(({ generation }) => generation)).toEqual([1, 1, 1, 1]);
  await place.verified(job.jobId);
}

it('a state that was deleted after a reload is begun anew with the configuration in force', async (context) => {
  const { place, sandbox, job, stdout, mirror, agent } = await mirroredJob(context, CONTENT);
  const { ino } = fs.statSync(mirror);
  const caFile = path.join(place.directory, 'present.pem');
  fs.writeFileSync(caFile, tls.rootCertificates[0] ?? '');
  place.configure(sandbox, { service: { tls: { caFile } }, watch: [requestOf(job)], results: { enabled: false } });
  await agent.logs('configuration changed');
  const database = path.join(place.state, 'agent.db');
  for (const suffix of ['', '-wal', '-shm']) fs.rmSync(database + suffix, { force: true });
  fs.appendFileSync(stdout, CONTENT);
  await until('the state to be there again', () => fs.existsSync(database));
  await expectItGoesOn({ place, job, stdout, mirror }, ino);
  expect(agent.end).toBeUndefined();
});

it('a state that another process locks is said, and waited for', async (context) => {
  const { agent, ...found } = await mirroredJob(context, CONTENT);
  const { ino } = fs.statSync(found.mirror);
  const database = path.join(found.place.state, 'agent.db');
  const other = new Database(database);
  other.exec('BEGIN IMMEDIATE');
  fs.appendFileSync(found.stdout, CONTENT);
  const said = await agent.logs('operation failed', { err: 'is locked by another process' });
  expect(said).toMatchObject({ level: 'error', code: 'store', hint: expect.stringContaining('fuser') });
  const sync = await found.place.agent('sync', found.job.jobId);
  const stderr = expect.stringContaining(`${database} is locked by another process`);
  expect(sync).toMatchObject({ code: 8, stdout: '', stderr });
  other.close();
  await expectItGoesOn(found, ino);
  await until('its end to be said', () => agent.logged('operation recovered', { scope: 'the state' }).length > 0);
});
