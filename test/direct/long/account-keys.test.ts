/** A cluster that hands out the real key of the account, whose end does nothing (docs/dev/rest.md 3.7), over a real sshd. */
import fs from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { Sshd } from '../sshd.ts';

const SERVICES = [
  ['SOAP', {}],
  ['REST', { protocol: 'rest', fileTransferUrl: undefined, namespace: undefined }],
] as const;

describe('the real key of the account', { ...PATIENCE, ...needs(...SSH) }, () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it.for(SERVICES)('brings results (%s), is given back each time, and stays nowhere', async ([, service], context) => {
    const e2e = await ResultsE2e.start(context, { sshd, habits: { accountKeys: true }, sections: { service } });
    const { place, sandbox } = e2e;
    const accepted = () => fs.readFileSync(`${sshd.directory}/authorized_keys`, 'utf8');
    const allowedBefore = accepted();
    await place.watch('501', ['9001']);
    for (const content of ['first', 'second']) {
      e2e.put('a.dat', content);
      const synced = await e2e.start('sync', '501').ended;
      expect([synced.stderr, synced.code]).toEqual(['', 0]);
      expect(fs.readFileSync(e2e.result('a.dat'), 'utf8')).toBe(content);
      // Nothing came by the service, and the end of the key was no failure.
      const [job] = (await place.status('501')).jobs as readonly unknown[];
      expect(job).toMatchObject({
        results: {
          lastSync: { way: 'rsync', fallback: null },
          transferMethod: { state: 'ended', way: 'rsync', reason: null },
        },
      });
      expect(e2e.privateKeysOnDisk()).toEqual([]);
      expect(fs.readdirSync(e2e.runtime)).toEqual([]);
    }
    // One key for both, which the host goes on accepting.
    expect(sandbox.counters.calls).toMatchObject({ GetFileTransferMethod: 2, EndFileTransfer: 2 });
    expect(sandbox.counters).toMatchObject({ openKeys: 0, issuedKeys: 0 });
    expect(accepted().slice(allowedBefore.length).trim().split('\n')).toHaveLength(1);
  });
});
