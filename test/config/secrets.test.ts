/** The secrets of a configuration: test/wiring/keys.test.ts shows that none of the schema is missing. */
import fs from 'node:fs';
import * as v from 'valibot';
import { expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { filesOf, keepSecrets, secretFilesOf } from '../../src/config/secrets.ts';
import { orNull, path as pathValue, section } from '../../src/config/values.ts';
import { Secrets } from '../../src/redact.ts';
import { secretKeysOf } from '../support/schema-keys.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, load } = configDirectory();

it('a secret key that is added to the schema is found', () => {
  const more = section({ mail: orNull(section({ passwordFile: v.optional(pathValue('/')) })) });
  expect(secretKeysOf(more)).toEqual(['mail.passwordFile']);
});

const ALL = `${MINIMAL}
view: {tokenFile: view-token}
fleet: {urlFile: db-url}
notify:
  - {on: [failed], url: "https://hooks.example.org/services/T0PLANTED0/PATHSECRETx8Yq2LmN0pQ?key=QUERYSECRET77", secretFile: hook.key, caFile: hook.crt}
  - {on: [failed], command: [/usr/bin/page, "/services/T00/ARGSECRETk3JhG5fD9sA", --key=WORDSECRET1, Bearer-WORDSECRET2, show, DIR/client.crt]}
`.replace(
  'auth:',
  '  proxy: http://p:1\n  proxyUserFile: proxy-user\n  tls: {caFile: ca.crt, certFile: client.crt, keyFile: client.key}\nauth:',
);

it('redaction hides each secret that a configuration names, and no usual word', async () => {
  const texts = {
    ...{ 'hook.key': 'HMACSECRET-9f8e7d6c', 'view-token': 'VIEWSECRET-1234567890-1234567890-abcdef' },
    ...{
      'proxy-user': 'account-of-proxy:PROXYSECRET:1',
      'db-url': 'postgres://u:DB+%2BSECRET99@h/x?password=QUERYPASS88',
    },
    'client.key': '-----BEGIN KEY-----\nKEYSECRETLINE1234\r\nKEYSECRETLINE5678\n-----END KEY-----',
    'client.crt': 'a certificate',
  };
  for (const [name, text] of Object.entries(texts)) fs.writeFileSync(path(name), `\ufeff${text}\r\n`, { mode: 0o644 });
  fs.writeFileSync(path('password'), 'PASSSECRET-4711', { mode: 0o600 });
  const config = await load(ALL.replace('DIR', path('.')));
  const signal = new AbortController().signal;
  const kept = async (of: Config, withPrograms = false) => {
    const secrets = new Secrets();
    const warnings: string[] = [];
    const onWarning = (message: string) => void warnings.push(message);
    const unread = await keepSecrets(of, secrets, { env: {}, signal, withPrograms, onWarning });
    return { secrets, warnings, unread };
  };
  const { secrets, warnings, unread } = await kept(config);
  for (const text of [
    ...[texts['hook.key'], texts['view-token'], 'PASSSECRET-4711', 'PATHSECRETx8Yq2LmN0pQ', 'QUERYSECRET77'],
    ...[
      'ARGSECRETk3JhG5fD9sA',
      'WORDSECRET1',
      'Bearer-WORDSECRET2',
      'PROXYSECRET:1',
      Buffer.from(texts['proxy-user']).toString('base64'),
    ],
    ...['DB+%2BSECRET99', 'DB++SECRET99', 'QUERYPASS88', 'KEYSECRETLINE1234', 'KEYSECRETLINE5678'],
  ])
    expect(secrets.hideInMessage(`failed at ${text}: no`)).toBe('failed at ***: no');
  const usual = `services show --key alice account-of-proxy hooks.example.org /usr/bin/page ${path('client.crt')} -----BEGIN KEY-----`;
  expect(secrets.hideInMessage(usual)).toBe(usual);
  expect([unread, warnings.length]).toEqual([[], 3]);
  for (const name of ['hook.key', 'proxy-user', 'client.key'])
    expect(warnings).toContainEqual(expect.stringContaining(`every user can read ${path(name)}`));
  const named = ['hook.key', 'view-token', 'proxy-user', 'db-url', 'client.key', 'password'];
  expect(secretFilesOf(config).sort()).toEqual(named.map(path).sort());
  const files = [config.file, ...['ca.crt', 'client.crt', 'hook.crt', ...named].map(path)];
  expect(filesOf(config, {}).sort()).toEqual(files.sort());
  const usualView = await load(`${MINIMAL}view: {}\n`);
  expect(secretFilesOf(usualView)).toContain(`${usualView.state.directory}/view-token`);
  // The agent makes the token of the view; what else is missing is reported.
  for (const name of ['view-token', 'hook.key', 'password']) fs.rmSync(path(name));
  const others = await kept(config);
  expect(others.unread).toEqual(['password', 'hook.key'].map((name) => expect.stringContaining(path(name))));
  for (const text of ['DB+%2BSECRET99', 'KEYSECRETLINE1234', 'PATHSECRETx8Yq2LmN0pQ', 'PROXYSECRET:1'])
    expect(others.secrets.hideInMessage(`failed at ${text}: no`)).toBe('failed at ***: no');
  const program = await load(
    MINIMAL.replace('passwordFile: password', 'passwordCommand: [sh, -c, "echo $((7 * 1234567891))"]'),
  );
  const printed = [await kept(program), await kept(program, true)].map((each) =>
    each.secrets.hideInMessage('8641975237'),
  );
  expect(printed).toEqual(['8641975237', '***']);
});

it('the files of credentials are known by the directory of credentials', async () => {
  const credentials = MINIMAL.replace('passwordFile: password', 'passwordCredential: password');
  const config = await load(`${credentials}fleet: {urlCredential: db-url}\n`);
  expect(secretFilesOf(config, { CREDENTIALS_DIRECTORY: '/run/c' })).toEqual(['/run/c/password', '/run/c/db-url']);
});
