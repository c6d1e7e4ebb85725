import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadTls } from '../../src/config/load.ts';
import { failureOf } from '../support/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, write, load } = configDirectory();

const openssl = (words: string) => promisify(execFile)('openssl', words.split(' '), { cwd: path('') });
/** A self-signed certificate and its key: `NAME.pem` and `NAME.key`. */
const makeCertificate = (name: string) =>
  openssl(
    `req -x509 -subj /CN=${name} -days 2 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout ${name}.key -out ${name}.pem`,
  );

const withTls = (tls: string) => load(MINIMAL.replace('auth:', `  tls: ${tls}\nauth:`));

describe('the TLS files', () => {
  beforeAll(async () => {
    await Promise.all(['one', 'two'].map(makeCertificate));
    await write('no PEM', 'garbage');
    await openssl('x509 -in one.pem -outform der -out one.der');
  });

  it('are read', async () => {
    const tls = await loadTls(await withTls('{caFile: two.pem, certFile: one.pem, keyFile: one.key}'));
    expect(tls).toEqual({
      ca: await readFile(path('two.pem')),
      cert: await readFile(path('one.pem')),
      key: await readFile(path('one.key')),
    });
  });

  it('may be left out', async () => {
    expect(await loadTls(await load(MINIMAL))).toEqual({});
  });

  it.each([
    ['{caFile: missing}', /service\.tls\.caFile: .*missing: there is no such file/],
    ['{caFile: .}', /service\.tls\.caFile: .*: this is a directory/],
    ['{caFile: garbage}', /service\.tls\.caFile: .*garbage: expected certificates in PEM format/],
    ['{caFile: one.der}', /service\.tls\.caFile: .*one\.der: expected certificates in PEM format/],
    ['{certFile: garbage, keyFile: garbage}', /certFile: .*certificates in PEM(.|\n)*keyFile: .*private key/],
    ['{certFile: one.key, keyFile: one.pem}', /certFile: .*certificates in PEM/],
    [
      '{certFile: one.pem, keyFile: two.key}',
      /service\.tls: the key in .*two\.key does not belong to the certificate in/,
    ],
  ])('are refused: %s', async (tls, said) => {
    const error = await failureOf(loadTls(await withTls(tls)));
    expect(error.code).toBe('config');
    expect(error.message).toMatch(said);
    expect(error.hint).toBeTruthy();
  });
});
