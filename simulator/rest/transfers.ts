/** Keys and their end (docs/dev/rest.md 3.7). */
import { PROTOCOLS, REQUEST } from '../../src/remote/rest/contract.ts';
import type { Answer } from '../exchange.ts';
import type { Arguments } from './arguments.ts';
import { answerOf, type RestCall } from './call.ts';
import { membersOf } from './json.ts';
import { unreadable } from './problems.ts';

const ENDED = 'File transfer closed';

/** RSA of 4,096 bits, ECDSA of P-256, Ed25519: the number by the public key. */
const CIPHER_TYPES: Readonly<Record<string, number>> = { 'ssh-rsa': 2, 'ecdsa-sha2-nistp256': 3, 'ssh-ed25519': 6 };

export async function requestKey({ job, release, place }: RestCall): Promise<Answer> {
  const method = await place.keys.issue(job, { counts: release.keysCount, format: release.keyFormat });
  const members = release.methodMembers;
  const [, host = method.serverHostname, port] = /^(.*):(\d+)$/.exec(method.serverHostname) ?? [];
  const { credentials } = method;
  const cipherType = CIPHER_TYPES[credentials?.publicKey.split(' ')[0] ?? ''];
  const reported = {
    Id: 0,
    ServerHostname: / Port /.test(members) ? host : method.serverHostname,
    SharedBasepath: method.sharedBasepath,
    Protocol: PROTOCOLS[method.protocol],
    Port: port === undefined ? null : Number(port),
    FileTransferCipherType: cipherType,
    Credentials:
      credentials &&
      membersOf(
        {
          ...{ CipherType: cipherType, CredentialsAuthType: 4 },
          Username: credentials.username,
          PrivateKey: credentials.privateKey,
          PublicKey: credentials.publicKey,
        },
        release.credentialsMembers,
      ),
  };
  return answerOf(membersOf(reported, members));
}

/** EndFileTransfer, which wants the whole method back as it was. */
export async function endTransfer(given: Arguments, { job, place }: RestCall): Promise<Answer> {
  const method = required(given.object(REQUEST.usedMethod), REQUEST.usedMethod);
  for (const name of ['ServerHostname', 'SharedBasepath']) {
    required(method.text(name), name);
  }
  if (method.long('Protocol') !== String(PROTOCOLS.NetworkShare)) {
    const credentials = required(method.object('Credentials'), 'Credentials');
    for (const name of ['Username', 'PrivateKey', 'PublicKey']) {
      required(credentials.text(name), name);
    }
    await place.keys.end(job, credentials.text('PublicKey'));
  }
  return answerOf(ENDED);
}

/** CloseFileTransfer. */
export async function closeTransfer(given: Arguments, { job, place }: RestCall): Promise<Answer> {
  if (place.habits.transferProtocol !== 'NetworkShare') await place.keys.end(job, given.text(REQUEST.publicKey));
  return answerOf(ENDED);
}

function required<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw unreadable(name, `The ${name} field is required.`);
  return value;
}
