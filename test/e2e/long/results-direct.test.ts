import fs from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Sshd } from '../../direct/sshd.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';

describe('results by SSH', { ...PATIENCE, ...needs(...SSH) }, () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it('go on after a kill in the middle of a transfer: no key stays, on the server or on disk', async (context) => {
    const e2e = await ResultsE2e.start(context, { sshd, results: { bandwidthLimit: '1 MiB' } });
    const { place, sandbox } = e2e;
    const content = Buffer.alloc(6_000_000, 'text of a result\n');
    e2e.put('large.dat', content);
    await place.watch('501');
    const killed = e2e.start('run');
    await until('the transfer to be under way', () => e2e.privateKeysOnDisk().length > 0);
    expect(sandbox.openKeys).toHaveLength(1);
    await killed.kill();
    expect(e2e.privateKeysOnDisk().length).toBeGreaterThan(0);
    expect(fs.existsSync(e2e.result('large.dat'))).toBe(false);

    const first = sandbox.openKeys[0]?.publicKey;
    const again = e2e.start('run');
    await until('the old key to be ended', () => !sandbox.openKeys.some(({ publicKey }) => publicKey === first));
    await until('the result to be there', () => fs.existsSync(e2e.result('large.dat')));
    expect(fs.readFileSync(e2e.result('large.dat')).equals(content)).toBe(true);
    expect(sandbox.openKeys).toHaveLength(1);
    again.signal('SIGTERM');
    await again.ended;
    expect(sandbox.openKeys).toEqual([]);
    expect(e2e.privateKeysOnDisk()).toEqual([]);
    expect(fs.readdirSync(e2e.runtime)).toEqual([]);
  });

  /** A running agent that has brought the result of the job, and holds a key for the next ones. */
  async function withOpenKey(context: TestContext) {
    const e2e = await ResultsE2e.start(context, { sshd });
    const { place, sandbox } = e2e;
    e2e.put('a.dat', 'a');
    await place.watch('501');
    const running = await place.run();
    await until('the result to be there', () => fs.existsSync(e2e.result('a.dat')));
    expect(sandbox.openKeys).toHaveLength(1);
    return { e2e, place, sandbox, running };
  }

  it('end their key when the job is unwatched, also at once', async (context) => {
    const { e2e, place, sandbox, running } = await withOpenKey(context);
    expect((await place.agent('unwatch', '501')).code).toBe(0);
    expect(sandbox.openKeys).toEqual([]);
    e2e.put('b.dat', 'b');
    await place.agent('watch', '501');
    await until('the next one to be there', () => fs.existsSync(e2e.result('b.dat')));
    expect((await place.agent('unwatch', '501', '--now')).code).toBe(0);
    await until('its key to be ended', () => sandbox.openKeys.length === 0);
    await running.kill();
  });
});
