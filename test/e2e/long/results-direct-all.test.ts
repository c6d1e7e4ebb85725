/** Results by direct transfer, end to end: the built agent, a real sshd, a sandbox that counts its temporary keys. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { Sshd } from '../../support/sshd.ts';

describe('results by SSH', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it('come by SOAP where the key is refused, and status says why', async (context) => {
    const e2e = await ResultsE2e.start(context, { habits: { serverHostname: sshd.host } });
    e2e.put('a.dat', 'a');
    await e2e.place.watch('501');
    const synced = await e2e.place.agent('sync', '501');
    expect(synced.code).toBe(0);
    expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe('a');
    const { lastSync } = (await e2e.status()).results;
    expect(lastSync).toMatchObject({ way: 'service' });
    expect(lastSync?.fallback).toContain('127.0.0.1 refused the temporary key');
    expect((await e2e.place.agent('status', '501')).stdout).toContain(
      'by the service, not directly: 127.0.0.1 refused',
    );
    expect(e2e.sandbox.openKeys).toEqual([]);
  });
});

describe('results from a mounted share', () => {
  it('that no shareRoots covers come by SOAP; status and check say what to configure', async (context) => {
    const e2e = await ResultsE2e.start(context, { habits: { transferProtocol: 'NetworkShare' } });
    const { place, sandbox } = e2e;
    // What the service names is a directory of this machine, with a file of the same name.
    const named = path.join(e2e.runtime, 'private');
    fs.mkdirSync(path.join(named, '501', '11'), { recursive: true });
    fs.writeFileSync(path.join(named, '501', '11', 'a.dat'), 'a secret of this machine');
    Object.assign(sandbox.habits, { sharedRoot: named });
    e2e.put('a.dat', 'a result');
    await place.watch('501');
    expect((await place.agent('sync', '501')).code).toBe(0);
    expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe('a result');
    const said = `the service names the share ${named}/501, and results.shareRoots does not cover it`;
    expect((await e2e.status()).results.lastSync).toMatchObject({
      way: 'service',
      fallback: expect.stringContaining(said),
    });
    expect((await place.agent('status', '501')).stdout).toContain('results.shareRoots: {PATH OF THE CLUSTER');
    const { stdout } = await place.agent('check');
    expect(stdout).toContain(said);
    expect(stdout).toContain('results.shareRoots: {PATH OF THE CLUSTER: PATH OF THIS MACHINE}');
  });
});
