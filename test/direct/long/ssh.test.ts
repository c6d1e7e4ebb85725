/** Direct transfer by SSH against a real sshd: what the key may do, cuts, host keys, and where the private key is. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createKeyPair } from '../../../simulator/cluster/key-pair.ts';
import type { TransferMethod } from '../../../src/agent/ports/server.ts';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { Sshd } from '../../support/sshd.ts';
import { type LendOptions, TransferPlace } from '../place.ts';

describe('a transfer by SSH', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  const method = (place: TransferPlace, options: LendOptions = {}) => place.lend(sshd, options);

  it('takes keys as servers write them, and certificates, and says that a key is refused, or that nobody listens', async () => {
    const place = new TransferPlace();
    const at = (name: string) => path.join(place.directory, name);
    const fetch = (lent: TransferMethod) => place.fetch(place.transfer(), lent, ['11/a']);
    // The key may do no more than that; each file has Windows line ends.
    const command = place.onlyRsync();
    for (const format of ['rsa-pem', 'ec-pem', 'ed25519-openssh'] as const) {
      place.put('11/a', format);
      const lent = await method(place, { format, command });
      const privateKey = (lent.credentials?.privateKey ?? '').trimEnd().replaceAll('\n', '\r\n');
      await fetch({ ...lent, credentials: { username: null, publicKey: null, ...lent.credentials, privateKey } });
      expect(String(place.came.get('11/a'))).toBe(format);
    }
    const signed = await method(place, { allow: false });
    await expect(fetch(signed)).rejects.toThrow('127.0.0.1 refused the temporary key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('ca')], { stdio: 'ignore' });
    const credentials = { username: null, publicKey: null, privateKey: null, ...signed.credentials };
    fs.writeFileSync(at('key.pub'), `${credentials.publicKey}\n`);
    const user = credentials.username ?? '';
    execFileSync('ssh-keygen', ['-q', '-s', at('ca'), '-I', 'x', '-n', user, at('key.pub')], { stdio: 'ignore' });
    sshd.allow(`cert-authority ${fs.readFileSync(at('ca.pub'), 'utf8').trim()}`);
    const certificate = fs.readFileSync(at('key-cert.pub'), 'utf8');
    await fetch({ ...signed, credentials: { ...credentials, certificate } });
    expect(place.batches).toEqual([1, 1, 1, 1]);
    const nowhere = await method(place, { host: '127.0.0.1:1' });
    await expect(fetch(nowhere)).rejects.toMatchObject({ code: 'unreachable' });
  });

  it('from a host whose sshd is frozen is given up', async () => {
    const frozen: number[] = [];
    onTestFinished(() => {
      for (const pid of frozen) process.kill(pid, 'SIGKILL');
    });
    const place = new TransferPlace();
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
    const place = new TransferPlace();
    const { port } = server.address() as net.AddressInfo;
    const lent = await place.lend(sshd, { host: `127.0.0.1:${port}` });
    await expect(place.fetch(place.transfer(), lent, ['11/a'])).rejects.toMatchObject({ code: 'unreachable' });
    await until('its key to be gone', () => place.files(place.runtime).length === 0);
  });

  it('trusts a new host, a known one alone if it is strict, a pinned key alone, and never one whose key changed', async () => {
    const place = new TransferPlace();
    place.put('11/a', 'a');
    const own = await Sshd.start();
    onTestFinished(() => own.stop());
    const lent = await place.lend(own);
    const fetchBy = (...of: Parameters<TransferPlace['transfer']>) =>
      place.fetch(place.transfer(...of), lent, ['11/a']);
    const unknown = {
      code: 'unexpected-answer',
      message: 'the host key of 127.0.0.1 is not the one that is known',
    };
    await expect(fetchBy({ hostKeys: 'strict' })).rejects.toMatchObject(unknown);
    await fetchBy();
    expect(fs.readFileSync(place.knownHosts, 'utf8')).toContain(`[127.0.0.1]:${own.port} ssh-ed25519`);
    await fetchBy({ hostKeys: 'strict' });
    const { publicKey: another } = await createKeyPair('ed25519-openssh');
    await expect(fetchBy({ pinnedKeys: [another] })).rejects.toMatchObject(unknown);
    await fetchBy({ pinnedKeys: [another, own.publicKey] });
    await own.changeHostKey();
    await expect(fetchBy()).rejects.toMatchObject(unknown);
    expect(place.batches).toEqual([1, 1, 1]);
  });
});
