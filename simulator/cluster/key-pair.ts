/** Temporary SSH key pairs in the formats that servers hand out (docs/dev/servers.md 5.2). */
import { generateKeyPair, type KeyObject, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const generate = promisify(generateKeyPair);

export type KeyFormat = 'rsa-pem' | 'ec-pem' | 'ed25519-openssh';

export interface KeyPair {
  readonly privateKey: string;
  /** One line as in authorized_keys, without a comment. */
  readonly publicKey: string;
}

export async function createKeyPair(format: KeyFormat, rsaBits = 2_048): Promise<KeyPair> {
  if (format === 'rsa-pem') {
    const pair = await generate('rsa', { modulusLength: rsaBits });
    const { e, n } = pair.publicKey.export({ format: 'jwk' });
    const blob = sshStrings(Buffer.from('ssh-rsa'), sshNumber(e), sshNumber(n));
    return { privateKey: pem(pair.privateKey, 'pkcs1'), publicKey: line('ssh-rsa', blob) };
  }
  if (format === 'ec-pem') {
    const pair = await generate('ec', { namedCurve: 'P-256' });
    const { x, y } = pair.publicKey.export({ format: 'jwk' });
    const point = Buffer.concat([Buffer.of(4), fromBase64Url(x), fromBase64Url(y)]);
    const blob = sshStrings(Buffer.from('ecdsa-sha2-nistp256'), Buffer.from('nistp256'), point);
    return { privateKey: pem(pair.privateKey, 'sec1'), publicKey: line('ecdsa-sha2-nistp256', blob) };
  }
  const pair = await generate('ed25519');
  const { d, x } = pair.privateKey.export({ format: 'jwk' });
  const blob = sshStrings(Buffer.from('ssh-ed25519'), fromBase64Url(x));
  return { privateKey: openSsh(blob, fromBase64Url(x), fromBase64Url(d)), publicKey: line('ssh-ed25519', blob) };
}

const pem = (key: KeyObject, type: 'pkcs1' | 'sec1') => key.export({ format: 'pem', type }).toString();

function line(type: string, blob: Buffer): string {
  return `${type} ${blob.toString('base64')}`;
}

function fromBase64Url(text: string | undefined): Buffer {
  return Buffer.from(text ?? '', 'base64url');
}

/** A positive number as SSH writes it: a zero byte first where the highest bit is set. */
function sshNumber(text: string | undefined): Buffer {
  const bytes = fromBase64Url(text);
  return (bytes[0] ?? 0) < 0x80 ? bytes : Buffer.concat([Buffer.of(0), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function sshStrings(...parts: Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part) => [uint32(part.length), part]));
}

/** The unencrypted `openssh-key-v1` format: node:crypto does not write it. */
function openSsh(publicBlob: Buffer, publicKey: Buffer, seed: Buffer): string {
  const check = randomBytes(4);
  const secret = Buffer.concat([
    check,
    check,
    publicBlob,
    sshStrings(Buffer.concat([seed, publicKey]), Buffer.alloc(0)),
  ]);
  const padding = Buffer.from(Array.from({ length: (8 - (secret.length % 8)) % 8 }, (_, index) => index + 1));
  const none = Buffer.from('none');
  const body = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    sshStrings(none, none, Buffer.alloc(0)),
    uint32(1),
    sshStrings(publicBlob, Buffer.concat([secret, padding])),
  ]);
  const lines = body.toString('base64').match(/.{1,76}/g) ?? [];
  // As .NET breaks base64 into lines, between lines that end without a carriage return (docs/dev/rest.md 3.7).
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\r\n')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}
