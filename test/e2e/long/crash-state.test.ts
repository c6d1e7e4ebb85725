/** The state of the agent when it is gone: no byte of a mirror suffers. Other losses are simulated (test/virtual). */
import fs from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { expect, it } from 'vitest';
import { mirroredJob, requestOf } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';

/** Not UTF-8 here and there, more than one overlap long, and whole at its end. */
const CONTENT = Buffer.concat(
  Array.from({ length: 40 }, (_, line) =>
    Buffer.concat([Buffer.from(`${line} Příliš žluťoučký kůň`), Buffer.from([0xff, 0]), Buffer.from(' pěl ódy\n')]),
  ),
);

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
  await place.mirrored(job, 'stdout');
  // In place, and nothing is lost, repeated, or kept as a generation.
  expect(fs.readFileSync(mirror).equals(fs.readFileSync(stdout))).toBe(true);
  expect(fs.statSync(mirror).ino).toBe(ino);
  expect(fs.readdirSync(path.dirname(mirror)).filter((name) => name.startsWith('stdout'))).toEqual(['stdout.log']);
  const { size } = fs.statSync(stdout);
  await until('the job to be in the state, with all that is mirrored', async () =>
    (await place.status()).jobs[0]?.files.some(({ file, bytes }) => file === 'stdout' && bytes === size),
  );
  expect((await place.status()).jobs[0]?.files.map(({ generation }) => generation)).toEqual([1, 1, 1, 1]);
  await place.verified(job.jobId);
  expect(agent.end).toBeUndefined();
});
