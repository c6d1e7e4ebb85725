/** The configuration that OpenSSH reads: nothing of this machine may loosen which host is trusted. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { accessOf, withConfiguration } from '../../src/direct/ssh-access.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA';

it.each([
  ['with a pinned key only that host', [KEY], /UserKnownHostsFile ".*\/pinned"/, 'yes'],
  ['without one the host that was trusted first', [], /UserKnownHostsFile ".*\/known"/, 'accept-new'],
])('%s is trusted, whatever hosts the machine knows', async (_, pinnedKeys, file, checking) => {
  const directory = temporaryDirectory();
  const access = accessOf({
    ...{ serverHostname: 'h', sharedBasepath: '/scratch/501', protocol: 'SftpScp' },
    credentials: { username: 'hpc', privateKey: '-----BEGIN PRIVATE KEY-----', publicKey: 'key' },
  });
  const privately = new PrivateDirectory({
    stateDirectory: directory,
    environment: { RUNTIME_DIRECTORY: directory },
  });
  const options = { hostKeys: 'accept-new', knownHostsFile: path.join(directory, 'known'), pinnedKeys } as const;
  const signal = new AbortController().signal;
  const text = await withConfiguration(access, { ...options, directory: privately, signal }, async (config) =>
    fs.readFileSync(config, 'utf8'),
  );
  expect(text).toMatch(/^ {2}GlobalKnownHostsFile \/dev\/null$/m);
  // The first results may wait for it.
  expect(text).toMatch(/^ {2}ConnectTimeout [1-6]$/m);
  expect(text).toMatch(file);
  expect(text).toContain(`StrictHostKeyChecking ${checking}\n`);
});
