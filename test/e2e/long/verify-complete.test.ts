/** `agent verify --complete`: the list of the cluster itself, for which a real sshd lets rsync in. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { Sshd } from '../../support/sshd.ts';

const OLD = new Date('2020-01-01');

describe('agent verify --complete', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  /** A job whose listed files are all here, and one with an old date that the service never lists. */
  async function verified(context: TestContext, options: Partial<Parameters<typeof ResultsE2e.start>[1]> = {}) {
    const e2e = await ResultsE2e.start(context, { sshd, ...options });
    const { place, sandbox } = e2e;
    e2e.put('a.dat', 'a');
    await place.watch('501', ['9001']);
    expect(await place.agent('sync', '501')).toMatchObject({ code: 0 });
    const unpacked = (name: string) => fs.utimesSync(e2e.put(name, 'unpacked by tar'), OLD, OLD);
    return { e2e, place, sandbox, unpacked };
  }

  it('names what the service never lists, also with line breaks and other bytes in its name', async (context) => {
    const { e2e, place, sandbox, unpacked } = await verified(context);
    const all = await place.agent('verify', '501', '--complete');
    expect(all.stdout).toMatch(/^compared with the list of the cluster: 1 file$/m);
    expect(all).toMatchObject({ code: 0, stderr: '' });
    unpacked('old/input.dat');
    unpacked('two\nlines -> \\#012 é');
    fs.symlinkSync('/etc/passwd', path.join(path.dirname(e2e.put('b', '')), 'link'));
    expect(await place.agent('sync', '501')).toMatchObject({ code: 0 });
    expect(await place.agent('verify', '501')).toMatchObject({ code: 0 });
    const found = await place.agent('verify', '501', '--complete');
    const reason = 'the service does not list it; the cluster does (15 B)';
    expect(found.stdout.match(/^MISSING .*$/gm)?.sort()).toEqual([
      `MISSING    /11/old/input.dat: ${reason}`,
      `MISSING    /11/two\\u{000A}lines -> \\#012 é: ${reason}`,
    ]);
    expect(found.stdout).toMatch(/^compared with .* files; not followed: 1 link$/m);
    expect(found.code).toBe(1);
    expect(sandbox.openKeys).toEqual([]);
    expect(e2e.privateKeysOnDisk()).toEqual([]);
  });

  it('is answered by a running agent, with its key, and beside it no call is made', async (context) => {
    const { e2e, place, sandbox, unpacked } = await verified(context);
    const running = await place.run();
    unpacked('input.dat');
    // Only the agent is signed in.
    await until('the agent to be signed in', async () => (await e2e.status()).results.lastSync?.done === 0);
    fs.writeFileSync(path.join(place.directory, 'password'), 'not this one');
    const { code, stdout } = await place.agent('verify', '501', '--complete', '--json');
    const report = JSON.parse(stdout) as { files: { name: string; proof: { outcome: string } }[]; cluster: object };
    expect(report.files.filter(({ proof }) => proof.outcome === 'missing').map(({ name }) => name)).toEqual([
      '/11/input.dat',
    ]);
    expect(report).toMatchObject({ jobId: '501', notCompared: null, cluster: { files: expect.any(Number), links: 0 } });
    expect(code).toBe(1);
    expect((await place.agent('verify', '501')).stdout).toContain('--complete finds them');
    // A job that is not followed any more needs a key of its own, which is released.
    expect(await place.agent('unwatch', '501')).toMatchObject({ code: 0 });
    expect((await place.agent('verify', '501', '--complete')).code).toBe(1);
    await until('the key to be released', () => sandbox.openKeys.length === 0);
    await running.kill();
    expect(e2e.privateKeysOnDisk()).toEqual([]);
  });

  it('compares what came by SSH by SSH, without the list too, and asks the service neither for it nor for a pipe', async (context) => {
    const { e2e, place, sandbox } = await verified(context);
    const large = Buffer.alloc(3_000, 'large');
    e2e.put('large.dat', large);
    execFileSync('mkfifo', [path.join(path.dirname(e2e.put('b', 'b')), 'pipe')]);
    sandbox.habits.extraFiles = { '/11/pipe': '' };
    expect(await place.agent('sync', '501')).toMatchObject({ code: 0 });
    const { code, stdout } = await place.agent('verify', '501');
    expect(stdout).toMatch(/^equal +\/11\/large\.dat \(2\.9 KiB\)$/m);
    expect(stdout).toMatch(/^IRREGULAR +\/11\/pipe: it is a named pipe$/m);
    expect(stdout).toMatch(/^all 7 files equal \(2\.9 KiB\); without content on the server: 1 file$/m);
    expect(code).toBe(0);
    fs.writeFileSync(e2e.result('large.dat'), Buffer.concat([large.subarray(0, 1_500), Buffer.from('changed')]));
    const damaged = await place.agent('verify', '501');
    expect(damaged.stdout).toMatch(
      /^DIFFERENT +\/11\/large\.dat: first at byte 1500 \(1507 bytes here, 3000 on the server\)$/m,
    );
    expect(damaged.code).toBe(1);
    expect(sandbox.counters).toMatchObject({ openKeys: 0, calls: { DownloadFileFromCluster: 0 } });
  });

  it('fails where the keys permit no list, and where no SSH is used', async (context) => {
    const { place } = await verified(context, { allowed: 'nothing' });
    const refused = await place.agent('verify', '501', '--complete');
    expect(refused.stderr).toMatch(/rsync lists not all files of the job on /);
    expect(refused).toMatchObject({ code: 6, stdout: '' });
    const without = await verified(context, { results: { transfer: 'service' } });
    const { code, stderr } = await without.place.agent('verify', '501', '--complete');
    expect(stderr).toMatch(/the cluster cannot be asked for its files: no SSH and no share is in use/);
    expect(code).toBe(3);
  });
});
