/** The state of the agent when it is gone, older than the mirrors or of another version: no byte of a mirror suffers. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { CONTENT, expectItGoesOn, leftJob } from '../../support/e2e-left-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

describe.concurrent('a state', PATIENCE, () => {
  it.for([
    ['deleted', (file: string) => fs.rmSync(file)],
    ['deleted with its directory', (file: string) => fs.rmSync(path.dirname(file), { recursive: true })],
  ] as const)('that was %s is found again from the mirrors', async ([, harm], context) => {
    const found = await leftJob(context);
    const { place, stdout, mirror, database } = found;
    const inode = fs.statSync(mirror).ino;
    harm(database);
    fs.appendFileSync(stdout, CONTENT);
    await place.run();
    await expectItGoesOn(found, inode);
    expect(fs.readdirSync(place.state).filter((name) => name.includes('.broken-'))).toEqual([]);
  });

  it('that is an older copy costs the overlap and what the copy lacks, after a kill as well', async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task, mirror } = await submitQuietJob(place);
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

  it('of a newer version is refused, by every command, and left as it is', async (context) => {
    const { place, database } = await leftJob(context);
    const db = new Database(database);
    db.pragma('user_version = 99');
    db.close();
    const before = fs.readFileSync(database);
    for (const args of [['run'], ['status'], ['watch', '502', '--task', '1']]) {
      const ended = await place.agent(...args);
      expect(ended).toMatchObject({ code: 3, stdout: '' });
      expect(ended.stderr).toContain(`${database} was written by a newer version of the agent (its format is 99)`);
      expect(ended.stderr).toContain('install the newer agent');
    }
    expect(fs.readFileSync(database).equals(before)).toBe(true);
  });

  it('that was deleted under the running agent is begun anew', async (context) => {
    const found = await leftJob(context);
    const { place, stdout, mirror, database } = found;
    const inode = fs.statSync(mirror).ino;
    const agent = await place.run();
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(database + suffix, { force: true });
    fs.appendFileSync(stdout, CONTENT);
    await until('the state to be there again', () => fs.existsSync(database));
    await expectItGoesOn(found, inode);
    expect(agent.end).toBeUndefined();
  });
});
