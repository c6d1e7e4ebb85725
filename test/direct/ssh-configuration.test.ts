/** The configuration that OpenSSH reads: nothing of this machine may loosen which host is trusted. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { accessOf, withConfiguration } from '../../src/direct/ssh-access.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const CERTIFICATE = 'ssh-ed25519-cert-v01@openssh.com AAAAC3NzaC1lZDI1NTE5AAAAIA== of the service';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA';

it.each([
  ['with a pinned key only that host', [KEY], /UserKnownHostsFile ".*\/pinned"/, 'yes'],
  ['without one the host that was trusted first', [], /UserKnownHostsFile ".*\/known"/, 'accept-new'],
])('%s is trusted, whatever hosts the machine knows', async (_, pinnedKeys, file, checking) => {
  const directory = temporaryDirectory();
  const access = accessOf({
    ...{ serverHostname: 'h:2222', sharedBasepath: '/scratch/501', protocol: 'SftpScp' },
    credentials: {
      username: 'hpc',
      privateKey: '-----BEGIN PRIVATE KEY-----\r\n',
      publicKey: 'key',
      certificate: CERTIFICATE,
    },
  });
  const privately = new PrivateDirectory({
    stateDirectory: directory,
    environment: { RUNTIME_DIRECTORY: directory },
  });
  const options = { hostKeys: 'accept-new', knownHostsFile: path.join(directory, 'known'), pinnedKeys } as const;
  const signal = new AbortController().signal;
  const text = await withConfiguration(access, { ...options, directory: privately, signal }, async (config) => {
    const at = path.dirname(config);
    expect(fs.readFileSync(path.join(at, 'key'), 'utf8')).toBe('-----BEGIN PRIVATE KEY-----\n');
    expect(fs.readFileSync(path.join(at, 'pinned'), 'utf8')).toBe(
      pinnedKeys.map((key) => `[h]:2222 ${key}\n`).join(''),
    );
    expect(fs.readFileSync(path.join(at, 'certificate'), 'utf8')).toBe(`${CERTIFICATE}\n`);
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

const CREDENTIALS = { username: 'hpc$', privateKey: 'PRIVATE KEY-----', publicKey: 'key' };

const HOSTS = [null, '', '-oProxyCommand=id', 'host\nProxyCommand id', 'root@host', '%h', '$(id)', '[::1', '[h]'];
const PORTS = ['host:-1', 'host:0', 'host:1x', 'host -oProxyCommand=id', 'host:65536'];
const USERS = [
  'a\nProxyCommand id',
  '-oProxyCommand=id',
  'a b',
  '$(id)',
  '`id`',
  '%u',
  'a;id',
  'a"b',
  '../a',
  '',
  'u$$',
  5,
];

it.each<[what: string, methods: readonly object[]]>([
  ['host name', [...[...HOSTS, ...PORTS].map((serverHostname) => ({ serverHostname })), { port: 0 }]],
  ['base path', [null, '', '--delete', '/a\nb', ':module'].map((sharedBasepath) => ({ sharedBasepath }))],
  ['user name', [{ credentials: null }, ...USERS.map((username) => ({ credentials: { ...CREDENTIALS, username } }))]],
  ['private key', ['PUBLIC KEY-----', null].map((privateKey) => ({ credentials: { ...CREDENTIALS, privateKey } }))],
  [
    'certificate',
    [`${CERTIFICATE}\nmore`, ` ${CERTIFICATE}`].map((certificate) => ({
      credentials: { ...CREDENTIALS, certificate },
    })),
  ],
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
