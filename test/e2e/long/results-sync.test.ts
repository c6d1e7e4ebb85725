/** What `sync` and `status` say of results that are not there, and the exit codes: all there, some failed, nothing done. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import { Store } from '../../../src/store/store.ts';
import { ResultsE2e } from '../../support/results-place.ts';

it('everything is there, or left out as the configuration wants it: 0, and status names what is left out', async (context) => {
  const results = {
    transfer: 'soap',
    exclude: ['*.tmp'],
    include: ['11/**'],
    maxFileBytes: 1_000,
    bandwidthLimit: '1 MiB',
  };
  const e2e = await ResultsE2e.start(context, { results });
  e2e.put('a.dat', 'a');
  e2e.put('scratch.tmp', 'x');
  e2e.put('large.dat', Buffer.alloc(1_001));
  await e2e.place.watch('501');
  const synced = await e2e.place.agent('sync', '501');
  expect(synced).toMatchObject({ code: 0, stderr: '' });
  expect(synced.stdout).toContain('1 result checked, 1 new or changed, 1 B in ');
  expect(synced.stdout).toContain('; 2 left out (reasons: agent status 501)');
  const status = await e2e.place.agent('status', '501');
  expect(status.stdout).toContain('1 left out: results.exclude names it (/11/scratch.tmp)');
  expect(status.stdout).toContain('1 left out: larger than results.maxFileBytes (1000 bytes) (/11/large.dat)');
  expect(status.stdout).toContain('results: 1 of 3 (1 B), 2 left out');
});

it('a name is refused and a place is taken: 1, and the others came', async (context) => {
  const e2e = await ResultsE2e.start(context, {
    results: { transfer: 'soap' },
    habits: { extraFiles: { '/11/../../escape': 'x', '/11/\u202Egnp.exe': 'shown backwards' } },
  });
  e2e.put('a.dat', 'a');
  e2e.put('taken', 'from the server');
  await e2e.place.watch('501');
  fs.mkdirSync(path.dirname(e2e.result('taken')), { recursive: true });
  fs.symlinkSync('/etc/hostname', e2e.result('taken'));
  const synced = await e2e.place.agent('sync', '501');
  expect(synced.code).toBe(1);
  expect(synced.stderr).toMatch(
    /^agent: results refused jobId=501 count=1 .*\/11\/..\/..\/escape: it has the part \.\./m,
  );
  expect(synced.stdout).toContain('; 1 failed, 1 refused by name (reasons: agent status 501)');
  expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe('a');
  expect(fs.readFileSync(e2e.result('\u202Egnp.exe'), 'utf8')).toBe('shown backwards');
  const { stdout } = await e2e.place.agent('status', '501');
  expect(stdout).toMatch(/1 failed: .*taken is a link, and is not followed or replaced \(\/11\/taken\)/);
  expect(stdout).toContain('1 refused: it has the part .. (/11/../../escape)');
  expect(stdout).not.toContain('\u202E');
  // Told once: the next pass says it no more.
  expect((await e2e.place.agent('sync', '501')).stderr).toBe('');
});

it('a hundred thousand results failed: status counts all, and names some', async (context) => {
  const e2e = await ResultsE2e.start(context, { results: { transfer: 'soap' } });
  const { place } = e2e;
  await place.watch('501');
  const store = new Store({ directory: place.state, service: 'x', owner: true, now: Date.now });
  const jobId = '501' as JobId;
  const nothing = {
    bytes: null,
    sha256: null,
    live: null,
    fetchedAt: null,
    stamp: null,
    stampProven: false,
    hangs: 0,
  } as const;
  const row = {
    jobId,
    state: 'failed',
    reason: 'no access',
    ...nothing,
    listedAt: 1,
    dueAt: 1,
    intervalMs: 1,
  } as const;
  store.results.saveAll(Array.from({ length: 100_000 }, (_, at) => ({ ...row, name: `/11/${'x'.repeat(200)}${at}` })));
  store.results.setWithoutRow(jobId, { refused: 7, 'left-out': 3 });
  store.close();
  const reported = await place.agent('status', '501', '--json');
  const [job] = JSON.parse(reported.stdout).jobs;
  expect(job.results).toMatchObject({ listed: 100_010, synced: 0, failed: 100_007, refused: 7, leftOut: 3 });
  expect(job.results.notSynced).toHaveLength(1_000);
  const { stdout } = await place.agent('status', '501');
  expect(stdout).toContain('results: 0 of 100010 (0 B), 100000 failed, 7 refused, 3 left out');
  expect(stdout).toMatch(/0 failed: no access \(.* and others\)/);
  expect(stdout.split('\n').length).toBeLessThan(40);
});

it('there is no room: 1, and status says so; with room again, it comes', async (context) => {
  const e2e = await ResultsE2e.start(context, { results: { transfer: 'soap' } });
  const config = JSON.parse(fs.readFileSync(e2e.place.configFile, 'utf8')) as { mirror: Record<string, unknown> };
  config.mirror['minFreeBytes'] = '1000 TiB';
  e2e.place.writeConfig(JSON.stringify(config));
  e2e.put('a.dat', 'a');
  await e2e.place.watch('501');
  expect((await e2e.place.agent('sync', '501')).code).toBe(1);
  const { stdout } = await e2e.place.agent('status', '501');
  expect(stdout).toContain('1 failed: less than mirror.minFreeBytes would stay free');
  config.mirror['minFreeBytes'] = 0;
  e2e.place.writeConfig(JSON.stringify(config));
  expect((await e2e.place.agent('sync', '501')).code).toBe(0);
  expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe('a');
});

it('nothing was done: the code says why', async (context) => {
  const e2e = await ResultsE2e.start(context, { results: { transfer: 'soap' } });
  expect(await e2e.place.agent('sync', '502')).toMatchObject({ code: 7, stdout: '' });
  await e2e.place.watch('501');
  await e2e.sandbox.close();
  expect(await e2e.place.agent('sync', '501')).toMatchObject({ code: 6, stdout: '' });
});
