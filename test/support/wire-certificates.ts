/** Certificates for the tests of TLS, made by openssl: an authority, a server and a client. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface Certificates {
  readonly ca: Buffer;
  /** For 127.0.0.1. */
  readonly server: Certificate;
  /** Of the same authority, for another host. */
  readonly otherHost: Certificate;
  readonly client: Certificate;
}

export function makeCertificates(directory: string): Certificates {
  const path = (name: string) => join(directory, name);
  const openssl = (...argv: string[]) => execFileSync('openssl', argv, { stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    path('ca.key'),
    '-out',
    path('ca.pem'),
    '-days',
    '2',
    '-subj',
    '/CN=ca',
  );
  const issue = (name: string, altName: string): Certificate => {
    const request = ['-keyout', path(`${name}.key`), '-out', path(`${name}.csr`), '-subj', `/CN=${name}`];
    openssl('req', ...newKey, ...request);
    writeFileSync(path(`${name}.ext`), `subjectAltName=${altName}\n`);
    const signing = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial', '-days', '2'];
    openssl(
      'x509',
      '-req',
      '-in',
      path(`${name}.csr`),
      ...signing,
      '-extfile',
      path(`${name}.ext`),
      '-out',
      path(`${name}.pem`),
    );
    return { cert: readFileSync(path(`${name}.pem`)), key: readFileSync(path(`${name}.key`)) };
  };
  return {
    server: issue('server', 'IP:127.0.0.1'),
    otherHost: issue('other', 'DNS:other.example'),
    client: issue('client', 'DNS:client.example'),
    ca: readFileSync(path('ca.pem')),
  };
}
