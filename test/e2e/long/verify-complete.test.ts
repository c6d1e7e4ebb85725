/** `agent verify --complete`: the list of the cluster itself, for which a real sshd lets rsync in. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Sandbox } from '../../../simulator/sandbox.ts';
import { privateDirectoryPrefix } from '../../../src/direct/private-directory.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { Sshd } from '../../support/sshd.ts';

const OLD = new Date('2020-01-01');

/** Files of this agent that hold a private key; those of agents of other tests, in the directory of all, do not count. */
function privateKeysOf({ state, mirror }: Place): string[] {
  const shared = process.env['XDG_RUNTIME_DIR'] ?? '/dev/shm';
  const ours = fs.readdirSync(shared).filter((name) => name.startsWith(privateDirectoryPrefix(state)));
  return [state, mirror, ...ours.map((name) => path.join(shared, name))].flatMap((directory) =>
    fs
      .readdirSync(directory, { recursive: true, withFileTypes: true })
      .map((entry) => path.join(entry.parentPath, entry.name))
      .filter((file) => fs.statSync(file).isFile() && fs.readFileSync(file).includes('PRIVATE KEY-----')),
  );
}

describe('agent verify --complete', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  /** A job whose listed files are all here, and one with an old date that the service never lists. */
  async function verified(context: TestContext, { transfer = 'direct', isAllowed = true } = {}) {
    const place = Place.make(context);
    const cluster = path.join(place.directory, 'cluster');
    const user = { username: 'alice', password: 'correct horse', token: 'token' };
    const sandbox = await Sandbox.start({
      ...{ directory: cluster, users: [user] },
      habits: { keyFormat: 'ed25519-openssh', serverHostname: sshd.host },
      onKeyIssued: (_, publicKey) =>
        sshd.allow(publicKey, isAllowed ? undefined : 'echo "not allowed here" >&2; exit 1'),
      onKeyEnded: (_, publicKey) => sshd.refuse(publicKey),
    });
    context.onTestFinished(() => sandbox.close());
    const passwordFile = path.join(place.directory, 'password');
    fs.writeFileSync(passwordFile, user.password, { mode: 0o600 });
    const { baseUrl } = sandbox;
    place.configure({ baseUrl, username: user.username, passwordFile }, { results: { intervalSeconds: 1, transfer } });
    const job = await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '11' }] });
    const put = (name: string, content: string | Buffer) => {
      const file = path.join(job.tasks[0]?.directory ?? '', name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, content);
      return file;
    };
    put('a.dat', 'a');
    await place.watch('501', ['9001']);
    expect(await place.agent('sync', '501')).toMatchObject({ code: 0 });
    const unpacked = (name: string) => fs.utimesSync(put(name, 'unpacked by tar'), OLD, OLD);
    return { place, sandbox, put, unpacked };
  }

  it('names what the service never lists, also with line breaks and other bytes in its name', async (context) => {
    const { place, sandbox, put, unpacked } = await verified(context);
    const all = await place.agent('verify', '501', '--complete');
    expect(all.stdout).toMatch(/^compared with the list of the cluster: 1 file$/m);
    expect(all).toMatchObject({ code: 0, stderr: '' });
    unpacked('old/input.dat');
    unpacked('two\nlines -> \\#012 é');
    fs.symlinkSync('/etc/passwd', path.join(path.dirname(put('b', '')), 'link'));
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
    expect(privateKeysOf(place)).toEqual([]);
  });

  it('is answered by a running agent, with its key, and beside it no call is made', async (context) => {
    const { place, sandbox, unpacked } = await verified(context);
    const running = await place.run();
    unpacked('input.dat');
    // Only the agent is signed in.
    await running.logs('signed in');
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
    expect(privateKeysOf(place)).toEqual([]);
  });

  it('compares what came by SSH by SSH, without the list too, and asks the service neither for it nor for a pipe', async (context) => {
    const { place, sandbox, put } = await verified(context);
    const large = Buffer.alloc(3_000, 'large');
    put('large.dat', large);
    execFileSync('mkfifo', [path.join(path.dirname(put('b', 'b')), 'pipe')]);
    sandbox.habits.extraFiles = { '/11/pipe': '' };
    expect(await place.agent('sync', '501')).toMatchObject({ code: 0 });
    const { code, stdout } = await place.agent('verify', '501');
    expect(stdout).toMatch(/^equal +\/11\/large\.dat \(2\.9 KiB\)$/m);
    expect(stdout).toMatch(/^IRREGULAR +\/11\/pipe: it is a named pipe$/m);
    expect(stdout).toMatch(/^all 7 files equal \(2\.9 KiB\); without content on the server: 1 file$/m);
    expect(code).toBe(0);
    fs.writeFileSync(
      path.join(place.mirror, '501', 'results', '11', 'large.dat'),
      Buffer.concat([large.subarray(0, 1_500), Buffer.from('changed')]),
    );
    const damaged = await place.agent('verify', '501');
    expect(damaged.stdout).toMatch(
      /^DIFFERENT +\/11\/large\.dat: first at byte 1500 \(1507 bytes here, 3000 on the server\)$/m,
    );
    expect(damaged.code).toBe(1);
    expect(sandbox.counters).toMatchObject({ openKeys: 0, calls: { DownloadFileFromCluster: 0 } });
  });

  it('fails where the keys permit no list, and where no SSH is used', async (context) => {
    const { place } = await verified(context, { isAllowed: false });
    const refused = await place.agent('verify', '501', '--complete');
    expect(refused.stderr).toMatch(/rsync lists not all files of the job on /);
    expect(refused).toMatchObject({ code: 6, stdout: '' });
    const without = await verified(context, { transfer: 'service' });
    const { code, stderr } = await without.place.agent('verify', '501', '--complete');
    expect(stderr).toMatch(/the cluster cannot be asked for its files: no SSH and no share is in use/);
    expect(code).toBe(3);
  });
});
