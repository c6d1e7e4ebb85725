/** The secrets of a configuration: test/wiring/secrets.test.ts shows that none of the schema is missing. */
import fs from 'node:fs';
import * as v from 'valibot';
import { expect, it } from 'vitest';
import { keepSecrets, secretFilesOf } from '../../src/config/secrets.ts';
import { orNull, path as pathValue, section } from '../../src/config/values.ts';
import { Secrets } from '../../src/redact.ts';
import { secretKeysOf } from '../support/schema-keys.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, load, refusal } = configDirectory();

it('a secret key that is added to the schema is found', () => {
  const more = section({ mail: orNull(section({ passwordFile: v.optional(pathValue('/')) })) });
  expect(secretKeysOf(more)).toEqual(['mail.passwordFile']);
});

const ALL = `${MINIMAL}
view: {tokenFile: view-token}
notify:
  - {on: [failed], url: "https://hooks.example.org/services/T0PLANTED0/PATHSECRETx8Yq2LmN0pQ?key=QUERYSECRET77", secretFile: hook.key}
  - {on: [failed], command: [/usr/bin/page, "/services/T00/ARGSECRETk3JhG5fD9sA"]}
`;

it('redaction hides the secrets of notifications and of the view', async () => {
  const texts = { 'hook.key': 'HMACSECRET-9f8e7d6c', 'view-token': 'VIEWSECRET-1234567890-1234567890-abcdef' };
  for (const [name, text] of Object.entries(texts)) fs.writeFileSync(path(name), `\ufeff${text}\r\n`, { mode: 0o644 });
  fs.writeFileSync(path('password'), 'PASSSECRET-4711', { mode: 0o600 });
  const secrets = new Secrets();
  const warnings: string[] = [];
  const options = { env: {}, signal: new AbortController().signal, withPrograms: false };
  await keepSecrets(await load(ALL), secrets, { ...options, onWarning: (message) => warnings.push(message) });
  for (const text of [
    ...Object.values(texts),
    'PASSSECRET-4711',
    'PATHSECRETx8Yq2LmN0pQ',
    'QUERYSECRET77',
    'ARGSECRETk3JhG5fD9sA',
  ])
    expect(secrets.hideInMessage(`failed at ${text}: no`)).toBe('failed at ***: no');
  expect(warnings).toEqual([expect.stringContaining(`every user can read ${path('hook.key')}`)]);
});

it.each([
  ['notify', 'notify: [{on: [failed], url: "https://h.example.org/", secretFile: shared/hook.key}]'],
  ['view', 'view: {tokenFile: shared/token}'],
  ['fleet', 'fleet: {urlFile: shared/url}'],
])('a share root that contains the secret of the section %s is refused', async (_, section_) => {
  const refused = await refusal(`${MINIMAL}${section_}\nresults: {shareRoots: {/scratch: shared}}\n`);
  expect(refused.message).toContain('which no service may read');
});

it('files of all secrets are known, those of credentials by their directory', async () => {
  expect(secretFilesOf(await load(ALL)).sort()).toEqual(
    [path('hook.key'), path('password'), path('view-token')].sort(),
  );
  const credential = MINIMAL.replace('passwordFile: password', 'passwordCredential: password');
  expect(secretFilesOf(await load(credential), { CREDENTIALS_DIRECTORY: '/run/c' })).toEqual(['/run/c/password']);
});
