/** The state of the agent when it is gone, older than the mirrors or of another version: no byte of a mirror suffers. */
import fs from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { describe, expect, it } from 'vitest';
import { mirroredJob, quietJob, requestOf } from '../../support/e2e-job.ts';
import type { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

/** Not UTF-8 here and there, more than one overlap long, and whole at its end. */
const CONTENT = Buffer.concat(
  Array.from({ length: 40 }, (_, line) =>
    Buffer.concat([Buffer.from(`${line} Příliš žluťoučký kůň`), Buffer.from([0xff, 0]), Buffer.from(' pěl ódy\n')]),
  ),
);

/** A job whose stdout was mirrored whole; its agent has ended. */
async function leftJob(context: Parameters<typeof Place.make>[0]) {
  const { agent, ...found } = await mirroredJob(context, CONTENT);
  agent.signal('SIGTERM');
  await agent.ended;
  return { ...found, database: path.join(found.place.state, 'agent.db') };
}

/** The job grew; the mirror does too, in place, and nothing is lost, repeated, or kept as a generation. */
async function expectItGoesOn(
  { place, job, stdout, mirror }: Omit<Awaited<ReturnType<typeof leftJob>>, 'sandbox' | 'database'>,
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

describe.concurrent('a state', () => {
  it('that is an older copy costs the overlap and what the copy lacks, after a kill as well', async (context) => {
    const { place, sandbox, job, task, mirror } = await quietJob(context);
    const { stdout } = task.files;
    // What no text shows comes raw, whatever the state is.
    const lines = Buffer.from(CONTENT.toString('latin1').replaceAll('\xff', ''), 'latin1');
    fs.writeFileSync(stdout, lines);
    place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
    const first = await place.run();
    await place.mirrored(job, 'stdout');
    first.signal('SIGTERM');
    await first.ended;
    fs.cpSync(place.state, `${place.state}.copy`, { recursive: true });

    const agent = await place.run();
    for (let times = 0; times < 12; times++) {
      fs.appendFileSync(stdout, lines);
      await place.mirrored(job, 'stdout');
    }
    await agent.kill();
    fs.rmSync(place.state, { recursive: true });
    fs.renameSync(`${place.state}.copy`, place.state);
    const before = (await sandbox.calls()).length;
    const inode = fs.statSync(mirror).ino;
    fs.appendFileSync(stdout, lines);
    await place.run();
    await place.mirrored(job, 'stdout');

    const calls = (await sandbox.calls()).slice(before);
    const offsets = calls.flatMap(({ entries = [] }) =>
      entries.flatMap((entry) => (entry?.fileType === 'StandardOutputFile' ? [Number(entry.offset)] : [])),
    );
    expect(offsets.length).toBeGreaterThan(0);
    // The overlap, and what is before it to show how the service decodes.
    expect(Math.min(...offsets)).toBeGreaterThan(lines.length - 256 - 1_100);
    expect(calls.filter(({ operation }) => operation === 'DownloadFileFromCluster')).toEqual([]);
    await expectItGoesOn({ place, job, stdout, mirror }, inode);
  });

  it('that was deleted after a reload is begun anew with the configuration in force', async (context) => {
    const found = await leftJob(context);
    const { place, sandbox, job, stdout, mirror, database } = found;
    const inode = fs.statSync(mirror).ino;
    const configureWith = (name: string) => {
      const caFile = path.join(place.directory, name);
      fs.writeFileSync(caFile, tls.rootCertificates[0] ?? '');
      place.configure(sandbox, { service: { tls: { caFile } }, watch: [requestOf(job)], results: { enabled: false } });
      return caFile;
    };
    const former = configureWith('former.pem');
    const agent = await place.run();
    configureWith('present.pem');
    await agent.logs('configuration changed');
    fs.rmSync(former);
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(database + suffix, { force: true });
    fs.appendFileSync(stdout, CONTENT);
    await until('the state to be there again', () => fs.existsSync(database));
    await expectItGoesOn(found, inode);
    expect(agent.end).toBeUndefined();
  });
});
