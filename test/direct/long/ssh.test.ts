/** Direct transfer by SSH against a real sshd: what the key may do, cuts, host keys, and where the private key is. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKeyPair } from '../../../simulator/cluster/key-pair.ts';
import { GROWING_DIRECTORY } from '../../../src/direct/directories.ts';
import { PrivateDirectory } from '../../../src/direct/private-directory.ts';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { Sshd } from '../../support/sshd.ts';
import { commandLines, type LendOptions, SshPlace } from '../ssh-place.ts';
import { CuttableLine, restrictedCommand } from '../sshd.ts';

/** Where rsync writes a file that is not complete. */
const GROWING = `rsync/${GROWING_DIRECTORY}`;
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

  it('finds the port in a member of its own, unless the host names one', async () => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    const lent = await method(place);
    const [host = '', port = ''] = sshd.host.split(':');
    await place.fetch(place.transfer(), { ...lent, serverHostname: host, port: Number(port) }, ['11/a']);
    await place.fetch(place.transfer(), { ...lent, port: 1 }, ['11/a']);
    expect(place.came.get('11/a')?.toString()).toBe('a');
  });

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
    const command = restrictedCommand(place.directory, place.cluster);
    const lent = await method(place, { command });
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

  it('hands over what came while the rest is on its way, and keeps what came of a file when it is stopped', async () => {
    const place = new SshPlace();
    const line = await CuttableLine.to(sshd.port);
    const names = Array.from({ length: 300 }, (_, number) => `11/f${number}`);
    for (const name of names) place.put(name, name);
    place.put('12/large', Buffer.alloc(8_000_000, 'large'));
    const lent = await method(place, { host: `127.0.0.1:${line.port}` });
    // In the middle of the large one, which comes last.
    line.silentAfterBytes = 4_000_000;
    const stop = new AbortController();
    const fetching = place.fetch(place.transfer(), lent, [...names, '12/large'], { signal: stop.signal });
    const isGrowing = () =>
      place
        .files(place.arrival)
        .some((file) => file.startsWith(`${GROWING}/`) && sizeOf(path.join(place.arrival, file)) > 0);
    const half = until('the small ones to be handed over', () => place.came.size === names.length && isGrowing());
    await Promise.race([fetching, half]);
    stop.abort();
    await expect(fetching).rejects.toMatchObject({ code: 'aborted' });
    expect([...place.came.keys()].sort()).toEqual([...names].sort());
    expect(place.files(place.arrival).some((name) => name.endsWith('partial/large'))).toBe(true);
    line.silentAfterBytes = Number.POSITIVE_INFINITY;
    await place.fetch(place.transfer(), lent, ['12/large']);
    expect(place.came.get('12/large')).toHaveLength(8_000_000);
  });

  it('brings many files in few goes', async () => {
    const place = new SshPlace();
    const names = Array.from({ length: 2_000 }, (_, number) => `11/d${number % 7}/f${number}`);
    for (const name of names) place.put(name, name);
    const line = await CuttableLine.to(sshd.port);
    const lent = await method(place, { host: `127.0.0.1:${line.port}` });
    await place.fetch(place.transfer(), lent, names);
    expect(place.reached).toBe(1);
    for (const name of names) expect(place.came.get(name)?.toString(), name).toBe(name);
    expect(line.connections).toBeLessThanOrEqual(2);
    expect(place.batches.length).toBeLessThan(100);
  });

  describe('checks the host key', () => {
    it('trusts a new host, and never one whose key changed', async () => {
      const place = new SshPlace();
      place.put('11/a', 'a');
      const own = await Sshd.start();
      try {
        const lent = await method(place, { host: own.host });
        own.allow(lent.credentials?.publicKey ?? '');
        await place.fetch(place.transfer(), lent, ['11/a']);
        expect(fs.readFileSync(place.knownHosts, 'utf8')).toContain(`[127.0.0.1]:${own.port} ssh-ed25519`);
        await own.changeHostKey();
        await expect(place.fetch(place.transfer(), lent, ['11/a'])).rejects.toMatchObject({
          code: 'unexpected-answer',
          message: 'the host key of 127.0.0.1 is not the one that is known',
        });
      } finally {
        await own.stop();
      }
    });

    it('strictly: a host that is not known is refused', async () => {
      const place = new SshPlace();
      place.put('11/a', 'a');
      const lent = await method(place);
      const strict = place.transfer({ hostKeys: 'strict' });
      await expect(place.fetch(strict, lent, ['11/a'])).rejects.toThrow('is not the one that is known');
      fs.writeFileSync(place.knownHosts, `[127.0.0.1]:${sshd.port} ${sshd.publicKey}\n`);
      await place.fetch(strict, lent, ['11/a']);
      expect([...place.came.keys()]).toEqual(['11/a']);
    });

    it('against pinned keys, whatever else is known', async () => {
      const place = new SshPlace();
      place.put('11/a', 'a');
      const lent = await method(place);
      fs.writeFileSync(place.knownHosts, `[127.0.0.1]:${sshd.port} ${sshd.publicKey}\n`);
      const { publicKey: another } = await createKeyPair('ed25519-openssh');
      const wrong = place.transfer({ pinnedKeys: [another] });
      await expect(place.fetch(wrong, lent, ['11/a'])).rejects.toThrow('is not the one that is known');
      await place.fetch(place.transfer({ pinnedKeys: [another, sshd.publicKey] }), lent, ['11/a']);
      expect([...place.came.keys()]).toEqual(['11/a']);
    });
  });

  describe('the private key', () => {
    it('is a file of the agent alone while it is used, on no command line, and gone afterwards', async () => {
      const place = new SshPlace();
      place.put('11/a', Buffer.alloc(3_000_000, 'x'));
      const lent = await method(place);
      const secret = lent.credentials?.privateKey?.split('\n')[1] ?? '';
      const seen: string[] = [];
      const commands: string[] = [];
      await place.fetch(place.transfer(), lent, ['11/a'], {
        bytesPerSecond: 2_000_000,
        onBytes: () => {
          seen.push(...place.files(place.runtime));
          for (const name of place.files(place.runtime)) {
            const file = path.join(place.runtime, name);
            expect(fs.statSync(file).mode & 0o777).toBe(0o600);
            expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
          }
          commands.push(...commandLines());
        },
      });
      expect(seen.some((name) => name.endsWith('/key'))).toBe(true);
      expect(commands.some((line) => line.includes('rsync'))).toBe(true);
      expect(commands.filter((line) => line.includes(secret))).toEqual([]);
      expect(fs.readdirSync(place.runtime)).toEqual([]);
    });

    it('that a kill left behind is removed at the next start, and nobody else’s', async () => {
      const place = new SshPlace();
      const options = { stateDirectory: place.directory, environment: { RUNTIME_DIRECTORY: place.runtime } };
      await new PrivateDirectory(options).withFiles(
        () => ({ key: 'secret' }),
        async (directory) => {
          fs.cpSync(directory, `${directory}-copy`, { recursive: true });
        },
      );
      const others = path.join(place.runtime, 'jobtail-of-another-agent');
      fs.mkdirSync(others);
      expect(place.files(place.runtime)).toHaveLength(1);
      new PrivateDirectory(options).clearLeftovers();
      expect(fs.readdirSync(place.runtime)).toEqual(['jobtail-of-another-agent']);
    });
  });
});

/** The length of a file; 0 if it is gone. */
const sizeOf = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
