/** Results with nothing configured: the built agent finds out by itself which way they come, and `check` reports it. */
import fs from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sshd } from '../../direct/sshd.ts';
import { PATIENCE } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';

/** The default of `results.transfer`, with a limit that small files are above. */
const RESULTS = { transfer: undefined, directAboveBytes: '1 MiB' };

describe('results by default', { ...PATIENCE, ...needs(...SSH) }, () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it('come by SSH where they are large and the cluster is reached', async (context) => {
    const e2e = await ResultsE2e.start(context, { sshd, allowed: ['rsync'], results: RESULTS });
    const { place, sandbox } = e2e;
    expect((await place.agent('check')).stdout).toContain('files above 1.0 MiB and many at a time by SSH');
    e2e.put('small.dat', 'small');
    await place.watch('501');
    expect((await e2e.start('sync', '501').ended).code).toBe(0);
    expect(sandbox.counters).toMatchObject({ issuedKeys: 0 });
    e2e.put('large.dat', Buffer.alloc(3_000_000, 'large '));
    expect((await e2e.start('sync', '501').ended).code).toBe(0);
    expect(fs.readFileSync(e2e.result('large.dat')).equals(Buffer.alloc(3_000_000, 'large '))).toBe(true);
    expect((await e2e.status()).results.lastSync).toMatchObject({ way: 'rsync', fallback: null });
    expect(sandbox.counters).toMatchObject({ issuedKeys: 1, openKeys: 0 });
    expect((await place.agent('check')).stdout).toContain(`by rsync from ${sshd.host} for job 501`);
  });
});
