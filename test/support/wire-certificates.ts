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
  const openssl = (words: string) => execFileSync('openssl', words.split(' '), { cwd: directory, stdio: 'ignore' });
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
  openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca`);
  const issue = (name: string, altName: string): Certificate => {
    openssl(`req ${newKey} -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
    writeFileSync(path(`${name}.ext`), `subjectAltName=${altName}\n`);
    const signing = '-CA ca.pem -CAkey ca.key -CAcreateserial -days 2';
    openssl(`x509 -req -in ${name}.csr ${signing} -extfile ${name}.ext -out ${name}.pem`);
    return { cert: readFileSync(path(`${name}.pem`)), key: readFileSync(path(`${name}.key`)) };
  };
  return {
    server: issue('server', 'IP:127.0.0.1'),
    otherHost: issue('other', 'DNS:other.example'),
    client: issue('client', 'DNS:client.example'),
    ca: readFileSync(path('ca.pem')),
  };
}
