/** Direct transfer by SSH against a real sshd: what the key may do, cuts, host keys, and where the private key is. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createKeyPair } from '../../../simulator/cluster/key-pair.ts';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { Sshd } from '../../support/sshd.ts';
import { type LendOptions, SshPlace } from '../ssh-place.ts';

describe('a transfer by SSH', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  const method = (place: SshPlace, options: LendOptions = {}) => place.lend(sshd, options);

  it.each(['rsa-pem', 'ec-pem', 'ed25519-openssh'] as const)(
    'takes keys as servers write them, also with Windows line ends: %s',
    async (format) => {
      const place = new SshPlace();
      place.put('11/a', 'a');
      const lent = await method(place, { format });
      const privateKey = (lent.credentials?.privateKey ?? '').trimEnd().replaceAll('\n', '\r\n');
      const credentials = { username: null, publicKey: null, ...lent.credentials, privateKey };
      await place.fetch(place.transfer(), { ...lent, credentials }, ['11/a']);
      expect([...place.came.keys()]).toEqual(['11/a']);
    },
  );

  it('shows the certificate of a key where only signed keys are let in', async () => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    const lent = await method(place, { allow: false });
    const at = (name: string) => path.join(place.directory, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('ca')], { stdio: 'ignore' });
    fs.writeFileSync(at('key.pub'), `${lent.credentials?.publicKey}\n`);
    const user = lent.credentials?.username ?? '';
    execFileSync('ssh-keygen', ['-q', '-s', at('ca'), '-I', 'x', '-n', user, at('key.pub')], { stdio: 'ignore' });
    sshd.allow(`cert-authority ${fs.readFileSync(at('ca.pub'), 'utf8').trim()}`);
    const credentials = { username: null, publicKey: null, privateKey: null, ...lent.credentials };
    const certificate = fs.readFileSync(at('key-cert.pub'), 'utf8');
    await place.fetch(place.transfer(), { ...lent, credentials: { ...credentials, certificate } }, ['11/a']);
    expect(place.came.get('11/a')?.toString()).toBe('a');
  });

  it('goes below the job’s directory only, where the key is restricted to it', async () => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    const secret = path.join(place.directory, 'cluster', 'secret');
    fs.writeFileSync(secret, 'secret');
    const lent = await method(place, { command: place.onlyRsync() });
    const elsewhere = { ...lent, sharedBasepath: path.dirname(place.cluster) };
    await expect(place.fetch(place.transfer(), elsewhere, ['a'])).rejects.toMatchObject({
      code: 'unexpected-answer',
      message: expect.stringMatching(/^rsync cannot read the files on 127\.0\.0\.1: ./),
    });
    await place.fetch(place.transfer(), lent, ['11/a']);
    expect([...place.came.keys()]).toEqual(['11/a']);
  });

  it('says that a key is refused, or that nobody listens', async () => {
    const place = new SshPlace();
    const fetch = async (options: LendOptions) => place.fetch(place.transfer(), await method(place, options), ['11/a']);
    await expect(fetch({ allow: false })).rejects.toThrow('127.0.0.1 refused the temporary key');
    await expect(fetch({ host: '127.0.0.1:1' })).rejects.toMatchObject({ code: 'unreachable' });
  });

  it('from a host whose sshd is frozen is given up', async () => {
    const frozen: number[] = [];
    onTestFinished(() => {
      for (const pid of frozen) process.kill(pid, 'SIGKILL');
    });
    const place = new SshPlace();
    place.put('11/a', 'a');
    const note = path.join(place.directory, 'parent');
    const go = path.join(place.directory, 'go');
    const wait = `n=0; until [ -e ${go} ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done`;
    const command = place.script('freezing', `echo $PPID > ${note}`, wait, 'exec sh -c "$SSH_ORIGINAL_COMMAND"');
    const lent = await place.lend(sshd, { command });
    const fetched = place.fetch(place.transfer({ idleMs: 1_500 }), lent, ['11/a']);
    fetched.catch(() => {});
    await until('the session', () => fs.existsSync(note) && fs.readFileSync(note, 'utf8').endsWith('\n'));
    const pid = Number(fs.readFileSync(note, 'utf8'));
    frozen.push(pid);
    process.kill(pid, 'SIGSTOP');
    fs.writeFileSync(go, '');
    await expect(fetched).rejects.toMatchObject({
      message: expect.stringMatching(/^the transfer from 127\.0\.0\.1 stood still: /),
    });
    await until('its key to be gone', () => place.files(place.runtime).length === 0);
  });

  it('from a host that sends lines without end before it names its protocol ends', async () => {
    const server = net.createServer((socket) => {
      const more = () => {
        while (socket.writable && socket.write('this is a banner\r\n'.repeat(100)));
      };
      socket.on('error', () => {}).on('drain', more);
      more();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const place = new SshPlace();
    const { port } = server.address() as net.AddressInfo;
    const lent = await place.lend(sshd, { host: `127.0.0.1:${port}` });
    await expect(place.fetch(place.transfer(), lent, ['11/a'])).rejects.toMatchObject({ code: 'unreachable' });
    await until('its key to be gone', () => place.files(place.runtime).length === 0);
  });

  it('trusts a new host, and never one whose key changed', async () => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    const own = await Sshd.start();
    onTestFinished(() => own.stop());
    const lent = await place.lend(own);
    await place.fetch(place.transfer(), lent, ['11/a']);
    expect(fs.readFileSync(place.knownHosts, 'utf8')).toContain(`[127.0.0.1]:${own.port} ssh-ed25519`);
    await own.changeHostKey();
    await expect(place.fetch(place.transfer(), lent, ['11/a'])).rejects.toMatchObject({
      code: 'unexpected-answer',
      message: 'the host key of 127.0.0.1 is not the one that is known',
    });
  });

  it('trusts a known host alone if it is strict, and a pinned key alone, whatever else is known', async () => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    const lent = await method(place);
    const fetchBy = (...of: Parameters<SshPlace['transfer']>) => place.fetch(place.transfer(...of), lent, ['11/a']);
    await expect(fetchBy({ hostKeys: 'strict' })).rejects.toThrow('is not the one that is known');
    fs.writeFileSync(place.knownHosts, `[127.0.0.1]:${sshd.port} ${sshd.publicKey}\n`);
    await fetchBy({ hostKeys: 'strict' });
    const { publicKey: another } = await createKeyPair('ed25519-openssh');
    await expect(fetchBy({ pinnedKeys: [another] })).rejects.toThrow('is not the one that is known');
    await fetchBy({ pinnedKeys: [another, sshd.publicKey] });
    expect(place.batches).toEqual([1, 1]);
  });
});
