/** The state of the agent when it is broken or locked: no byte of a mirror suffers. */
import fs from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { CONTENT, expectItGoesOn, leftJob } from '../../support/e2e-left-job.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

describe.concurrent('a state', PATIENCE, () => {
  it('that was broken is found again from the mirrors', async (context) => {
    const found = await leftJob(context);
    const { place, stdout, mirror, database } = found;
    const inode = fs.statSync(mirror).ino;
    fs.writeFileSync(database, fs.readFileSync(database).fill(0x2a, 0, 6_000));
    fs.appendFileSync(stdout, CONTENT);
    const agent = await place.run();
    await expectItGoesOn(found, inode);
    const aside = fs.readdirSync(place.state).filter((name) => name.includes('.broken-'));
    expect(aside).toEqual([expect.stringMatching(/^agent\.db\.broken-\d{4}-\d\d-\d\dT[\d-]+\.\d{3}Z$/)]);
    expect(await agent.logs('state broken, set aside')).toMatchObject({
      level: 'error',
      path: expect.stringContaining(aside[0] ?? ''),
    });
  });

  it('that another process locks is said, and waited for', async (context) => {
    const found = await leftJob(context);
    const { place, stdout, mirror, database, job } = found;
    const inode = fs.statSync(mirror).ino;
    const agent = await place.run();
    const other = new Database(database);
    other.exec('BEGIN IMMEDIATE');
    fs.appendFileSync(stdout, CONTENT);
    const said = await agent.logs('operation failed', { err: 'is locked by another process' });
    expect(said).toMatchObject({ level: 'error', code: 'store', hint: expect.stringContaining('fuser') });
    const sync = await place.agent('sync', job.jobId);
    expect(sync).toMatchObject({ code: 8, stdout: '' });
    expect(sync.stderr).toContain(`${database} is locked by another process`);
    other.exec('ROLLBACK');
    other.close();
    await expectItGoesOn(found, inode);
    await until(
      'the end of it to be said',
      () => agent.logged('operation recovered', { scope: 'the state' }).length > 0,
    );
  });
});
