/** What `sync` and `status` say of results that are not there, and the exit codes: all there, some failed, nothing done. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { ResultsE2e } from '../../support/results-place.ts';

it('everything is there, or left out as the configuration wants it: 0, and status names what is left out', async (context) => {
  const results = {
    transfer: 'service',
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
    results: { transfer: 'service' },
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
  expect(synced.stdout).toContain('; 1 failed, 1 refused (reasons: agent status 501)');
  expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe('a');
  expect(fs.readFileSync(e2e.result('\u202Egnp.exe'), 'utf8')).toBe('shown backwards');
  const { stdout } = await e2e.place.agent('status', '501');
  expect(stdout).toMatch(/1 failed: .*taken is a link, and is not followed or replaced \(move .* \(\/11\/taken\)/);
  expect(stdout).toContain('1 refused: it has the part .. (/11/../../escape)');
  expect(stdout).not.toContain('\u202E');
  // Told once: the next pass says it no more.
  expect((await e2e.place.agent('sync', '501')).stderr).toBe('');
});
