/** Direct transfers over kills and orders: no result is lost, and no temporary key stays, on the server or on disk. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { CuttableLine, Sshd } from '../../direct/sshd.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { READS_TYPESCRIPT } from '../../support/typescript-hook.ts';

const WORKER = fileURLToPath(new URL('../../support/results-lease-worker.mjs', import.meta.url));

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

  it('go on after a kill in the middle of many small files: none is lost, wrong or left half', async (context) => {
    const line = await CuttableLine.to(sshd.port);
    const e2e = await ResultsE2e.start(context, { sshd, habits: { serverHostname: `127.0.0.1:${line.port}` } });
    const { place, sandbox } = e2e;
    const names = Array.from({ length: 400 }, (_, number) => `d${number % 7}/f${number}`);
    const contentOf = (name: string) => `${name} `.repeat(500);
    for (const name of names) e2e.put(name, contentOf(name));
    await place.watch('501');
    // The line falls silent in the middle, so that it is one, however quick this machine is.
    line.silentAfterBytes = 700_000;
    const killed = e2e.start('run');
    const here = () => names.filter((name) => fs.existsSync(e2e.result(name)));
    await until('some of them to be here', () => here().length > 0);
    await killed.kill();
    const before = here();
    expect(before.length).toBeLessThan(names.length);
    for (const name of before) expect(fs.readFileSync(e2e.result(name), 'utf8'), name).toBe(contentOf(name));

    line.silentAfterBytes = Number.POSITIVE_INFINITY;
    const again = e2e.start('run');
    await until('all of them to be here', () => here().length === names.length);
    for (const name of names) expect(fs.readFileSync(e2e.result(name), 'utf8'), name).toBe(contentOf(name));
    expect(sandbox.counters.calls).toMatchObject({ DownloadFileFromCluster: 0 });
    await until('their state', async () => (await e2e.status()).results.synced === names.length);
    again.signal('SIGTERM');
    await again.ended;
    expect(sandbox.openKeys).toEqual([]);
    expect(e2e.privateKeysOnDisk()).toEqual([]);
    await place.verified('501');
    const left = fs.readdirSync(path.join(place.mirror, '501'), { recursive: true, encoding: 'utf8' });
    expect(left.filter((name) => name.endsWith('.partial') || name.startsWith('.direct'))).toEqual([]);
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

  it('end their key when the state is removed under the running agent', async (context) => {
    const { place, sandbox, running } = await withOpenKey(context);
    for (const name of ['agent.db', 'agent.db-wal', 'agent.db-shm']) fs.rmSync(path.join(place.state, name));
    await running.logs('state directory replaced, creating it again');
    expect(sandbox.openKeys).toEqual([]);
    await running.kill();
  });

  it.for(['lease:ask', 'lease:asked', 'lease:open', 'lease:end', 'lease:ending', 'lease:ended'])(
    'killed by SIGKILL at %s, the next start leaves no key open',
    async (step, context) => {
      const e2e = await ResultsE2e.start(context, { sshd });
      const worker = spawn(process.execPath, [...READS_TYPESCRIPT, WORKER, e2e.place.configFile, step], {
        stdio: 'inherit',
      });
      const signal = await new Promise((resolve) => worker.once('close', (_, by) => resolve(by)));
      expect(signal).toBe('SIGKILL');
      expect(e2e.sandbox.openKeys).toHaveLength(['lease:open', 'lease:end'].includes(step) ? 1 : 0);
      const running = await e2e.place.run();
      await until('every key to be ended', () => e2e.sandbox.openKeys.length === 0);
      await running.kill();
      expect(e2e.privateKeysOnDisk()).toEqual([]);
    },
  );
});
