/** The configuration that OpenSSH reads: nothing of this machine may loosen which host is trusted. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { accessOf, withConfiguration } from '../../src/direct/ssh-access.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { TransferPlace } from './place.ts';

const CERTIFICATE = 'ssh-ed25519-cert-v01@openssh.com AAAAC3NzaC1lZDI1NTE5AAAAIA== of the service';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA';
const { signal } = new AbortController();
/** Where no host is known. */
const STRICT = { hostKeys: 'strict', knownHostsFile: '/known', pinnedKeys: [], signal } as const;

it.each([
  ['with a pinned key only that host', [KEY], /UserKnownHostsFile ".*\/pinned"/, 'yes'],
  ['without one the host that was trusted first', [], /UserKnownHostsFile ".*\/known"/, 'accept-new'],
])('%s is trusted, whatever hosts the machine knows', async (_, pinnedKeys, file, checking) => {
  const directory = temporaryDirectory();
  const privateKey = '-----BEGIN PRIVATE KEY-----\r\n';
  const access = accessOf({
    ...{ serverHostname: 'h:2222', sharedBasepath: '/scratch/501', protocol: 'SftpScp' },
    credentials: { username: 'hpc', privateKey, publicKey: 'key', certificate: CERTIFICATE },
  });
  const environment = { RUNTIME_DIRECTORY: directory };
  const privately = new PrivateDirectory({ stateDirectory: directory, environment });
  const options = { hostKeys: 'accept-new', knownHostsFile: path.join(directory, 'known'), pinnedKeys } as const;
  const text = await withConfiguration(access, { ...options, directory: privately, signal }, async (config) => {
    const at = path.dirname(config);
    const files = ['key', 'pinned', 'certificate'].map((name) => fs.readFileSync(path.join(at, name), 'utf8'));
    const pinned = pinnedKeys.map((key) => `[h]:2222 ${key}\n`).join('');
    expect(files).toEqual(['-----BEGIN PRIVATE KEY-----\n', pinned, `${CERTIFICATE}\n`]);
    return fs.readFileSync(config, 'utf8').replaceAll(at, 'DIRECTORY');
  });
  expect(text).toMatch(file);
  expect(text.replace(/^ {2}(?:Ciphers|UserKnownHostsFile) .*\n/gm, '')).toBe(`Host transfer
  HostName h
  Port 2222
  User hpc
  IdentityFile "DIRECTORY/key"
  CertificateFile "DIRECTORY/certificate"
  IdentitiesOnly yes
  IdentityAgent none
  PreferredAuthentications publickey
  BatchMode yes
  StrictHostKeyChecking ${checking}
  GlobalKnownHostsFile /dev/null
  UpdateHostKeys no
  ConnectTimeout 6
  ServerAliveInterval 15
  ServerAliveCountMax 4
  ClearAllForwardings yes
  ForwardAgent no
  PermitLocalCommand no
  ControlPath none
  RequestTTY no
  LogLevel ERROR
`);
  const strange = { ...options, knownHostsFile: '/a"b', directory: privately, signal };
  const written = withConfiguration(access, { ...strange, pinnedKeys: [] }, async () => {});
  await expect(written).rejects.toMatchObject({ code: 'config', hint: expect.stringContaining('without quotes') });
});

it('the ciphers that the processor accelerates come first, of those that OpenSSH has', async () => {
  const place = new TransferPlace();
  place.put('11/a', 'a');
  const ciphersWith = async (...lines: readonly string[]) => {
    place.script('bin/ssh', ...lines);
    const access = accessOf(await place.lend());
    const directory = new PrivateDirectory({ stateDirectory: place.directory, environment: {} });
    const read = async (file: string) => fs.readFileSync(file, 'utf8');
    return /Ciphers .*/.exec(await withConfiguration(access, { ...STRICT, directory }, read))?.[0];
  };
  place.hostIs();
  const fast = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'chacha20-poly1305@openssh.com'];
  const ciphers = [...fast, 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'];
  const printed = ['3des-cbc', ...[...ciphers].sort().reverse()].join('\\n');
  expect(await ciphersWith(`[ "$*" = "-Q cipher" ] && printf "${printed}\\n"`)).toBe(`Ciphers ${ciphers.join(',')}`);
  expect(await ciphersWith('echo aes128-cbc; echo aes256-ctr')).toBe('Ciphers aes256-ctr');
  expect(await ciphersWith('echo 3des-cbc')).toBeUndefined();
  vi.stubEnv('PATH', '/nowhere');
  expect(await ciphersWith()).toBeUndefined();
});

it('a locked key is written without its passphrase, if that is the right one', needs('ssh-keygen'), async () => {
  const place = new TransferPlace();
  const { credentials, ...method } = await place.lend();
  const file = path.join(place.directory, 'locked');
  const passphrase = 'pass "phrase" $HOME č';
  fs.writeFileSync(file, credentials?.privateKey ?? '', { mode: 0o600 });
  execFileSync('ssh-keygen', ['-q', '-p', '-P', '', '-N', passphrase, '-f', file], { stdio: 'ignore' });
  const directory = new PrivateDirectory({
    stateDirectory: place.directory,
    environment: { RUNTIME_DIRECTORY: place.runtime },
  });
  // Every user of the machine can read arguments. A shell would lose a variable whose name has spaces.
  const args = path.join(place.directory, 'args');
  const keygen = `#!${process.execPath}
    require('node:fs').appendFileSync('${args}', process.argv.slice(2).join(' ') + '\\n');
    const { spawnSync } = require('node:child_process');
    const env = { ...process.env, PATH: '${process.env['PATH']}' };
    process.exit(spawnSync('ssh-keygen', process.argv.slice(2), { env, stdio: 'inherit' }).status);`;
  place.hostIs();
  fs.writeFileSync(path.join(place.directory, 'bin/ssh-keygen'), keygen, { mode: 0o755 });
  const publicOf = (by: string) => {
    const privateKey = fs.readFileSync(file, 'utf8');
    const access = accessOf({ ...method, credentials: { username: 'u', publicKey: null, privateKey, passphrase: by } });
    return withConfiguration(access, { ...STRICT, directory }, async (config) => {
      const key = path.join(path.dirname(config), 'key');
      return execFileSync('ssh-keygen', ['-y', '-P', '', '-f', key], { encoding: 'utf8' }).trim();
    });
  };
  expect(await publicOf(passphrase)).toBe(credentials?.publicKey);
  for (const wrong of ['another', `${passphrase}\n`])
    await expect(publicOf(wrong)).rejects.toThrow('the passphrase of the service does not unlock its private key');
  expect(fs.readFileSync(args, 'utf8')).toMatch(/^-q -p .*key$/m);
  expect(fs.readFileSync(args, 'utf8')).not.toContain(passphrase);
});

const CREDENTIALS = { username: 'hpc$', privateKey: 'PRIVATE KEY-----', publicKey: 'key' };
const lent = (of: 'username' | 'privateKey' | 'certificate', values: readonly unknown[]) =>
  values.map((value) => ({ credentials: { ...CREDENTIALS, [of]: value } }));
const HOSTS = [
  ...[null, '', '-oProxyCommand=id', 'host\nProxyCommand id', 'root@host', '%h', '$(id)', '[::1', '[h]'],
  ...['host:-1', 'host:0', 'host:1x', 'host -oProxyCommand=id', 'host:65536'],
];
const USERS = [
  ...['a\nProxyCommand id', '-oProxyCommand=id', 'a b', '$(id)', '`id`', '%u', 'a;id', 'a"b', '../a', '', 'u$$', 5],
];

it.each<[what: string, methods: readonly object[]]>([
  ['host name', [...HOSTS.map((serverHostname) => ({ serverHostname })), { port: 0 }]],
  ['base path', [null, '', '--delete', '/a\nb', ':module'].map((sharedBasepath) => ({ sharedBasepath }))],
  ['user name', [{ credentials: null }, ...lent('username', USERS)]],
  ['private key', lent('privateKey', ['PUBLIC KEY-----', null])],
  ['certificate', lent('certificate', [`${CERTIFICATE}\nmore`, ` ${CERTIFICATE}`])],
])('a transfer method without a usable %s is refused', (what, methods) => {
  const usable = { serverHostname: 'h', sharedBasepath: '/', protocol: 'SftpScp', credentials: CREDENTIALS } as const;
  const message = `the transfer method of the service has no usable ${what}`;
  for (const method of methods)
    expect(() => accessOf({ ...usable, ...method } as TransferMethod), JSON.stringify(method)).toThrow(message);
});

it.each([
  ['h', 7, 'h', 7],
  ['h.example.org:8', 7, 'h.example.org', 8],
  ['[::1]:9', 7, '::1', 9],
  ['fe80::1', null, 'fe80::1', 22],
])('the host %s with the port %s is %s, %i', (serverHostname, port, ...expected) => {
  const method = { serverHostname, port, sharedBasepath: '//a/', protocol: 'SftpScp', credentials: CREDENTIALS };
  const access = accessOf(method as unknown as TransferMethod);
  expect([access.host, access.port, access.basePath]).toEqual([...expected, '//a']);
});
