/** Addresses over which a password would be sent unencrypted. */
import { expect, it } from 'vitest';
import { checkConfigFile, checkNotify } from '../../src/cli/check/machine.ts';
import { plainConnections } from '../../src/config/config.ts';
import { configDirectory } from './files.ts';

const { load } = configDirectory();

/** The origins that are named in the warnings about a configuration. */
const plainIn = async (text: string) =>
  plainConnections(await load(text)).map(({ text }) => text.replace(/ is not encrypted: .*/, ''));

const config = (fileTransferUrl: string, baseUrl: string, more = '') => `
service: {protocol: soap, fileTransferUrl: "${fileTransferUrl}", namespace: "http://namespace.example.org/", baseUrl: "${baseUrl}"${more}}
auth: {method: password, username: alice, passwordFile: password}
mirror: {directory: mirror}
state: {directory: state}
`;

it.each([
  ['https://a.example.org/F', 'https://a.example.org', []],
  ['http://a.example.org/F', 'http://a.example.org', ['http://a.example.org']],
  ['https://a.example.org/F', 'http://b.example.org:8080/x', ['http://b.example.org:8080']],
  ['http://10.1.2.3/F', 'https://a.example.org', ['http://10.1.2.3']],
  ['http://localhost:8080/F', 'http://127.0.0.1:8080', []],
  ['http://[::1]:8080/F', 'http://127.1:8080', []],
  ['http://[::2]:8080/F', 'http://localhost.example.org', ['http://[::2]:8080', 'http://localhost.example.org']],
])('with the addresses %s and %s, what goes without TLS is named', async (fileTransferUrl, baseUrl, expected) => {
  expect(await plainIn(config(fileTransferUrl, baseUrl))).toEqual(expected);
});

it('a proxy changes nothing about it', async () => {
  const proxied = config('http://a.example.org/F', 'https://a.example.org', ', proxy: "http://127.0.0.1:3128"');
  expect(await plainIn(proxied)).toEqual(['http://a.example.org']);
});

it('a receiver of notifications on another machine without encryption is named without its path, which is a secret', async () => {
  const rules = ['http://hooks.example.org/SECRET', 'https://a.example.org/x', 'http://127.0.0.1:9/y'];
  const notify = `notify: [${rules.map((url) => `{on: [finished], url: "${url}"}`).join(', ')}]\n`;
  const loaded = await load(config('https://a.example.org/F', 'https://a.example.org') + notify);
  expect(plainConnections(loaded)).toEqual([
    {
      scope: 'notifications',
      text: expect.stringMatching(/^http:\/\/hooks.example.org is not encrypted: names of jobs/),
    },
  ]);
  const found = [...checkConfigFile(loaded), ...(await checkNotify(loaded, AbortSignal.timeout(60_000)))];
  expect(found.filter(({ mark, text }) => mark === 'warning' && text.includes('hooks.example.org'))).toHaveLength(1);
  expect(JSON.stringify(found)).not.toContain('SECRET');
});
