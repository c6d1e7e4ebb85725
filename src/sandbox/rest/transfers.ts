/** Keys and their end (docs/rest.md 3.7). */
import { CREDENTIALS, PROTOCOLS, REQUEST, TRANSFER_METHOD } from '../../remote/rest/contract.ts';
import type { Answer } from '../exchange.ts';
import type { Arguments } from './arguments.ts';
import { answerOf, type RestCall } from './call.ts';
import { unreadable } from './problems.ts';

const ENDED = 'File transfer closed';

export async function requestKey({ job, release, place }: RestCall): Promise<Answer> {
  const { habits, keys } = place;
  const method = await keys.issue(job, habits.maxKeysCounts === 'ever' ? 'ever' : release.keysCount);
  if (method === null) return answerOf(null, place);
  const [, host = method.serverHostname, port] = /^(.*):(\d+)$/.exec(method.serverHostname) ?? [];
  const local = habits.localTransfer && release.localProtocol && method.protocol === 'SftpScp';
  const { credentials } = method;
  return answerOf(
    {
      [TRANSFER_METHOD.hostname]: release.port ? host : method.serverHostname,
      [TRANSFER_METHOD.basepath]: method.sharedBasepath,
      [TRANSFER_METHOD.protocol]: PROTOCOLS[local ? 'LocalSftpScp' : method.protocol],
      ...(release.port && { [TRANSFER_METHOD.port]: port === undefined ? null : Number(port), ProxyConnection: null }),
      [TRANSFER_METHOD.credentials]: credentials && {
        [CREDENTIALS.username]: credentials.username,
        [CREDENTIALS.password]: null,
        CipherType: 1,
        CredentialsAuthType: 1,
        [CREDENTIALS.privateKey]: credentials.privateKey,
        [CREDENTIALS.certificate]: credentials.certificate,
        [CREDENTIALS.publicKey]: credentials.publicKey,
        [CREDENTIALS.passphrase]: credentials.passphrase,
      },
    },
    place,
  );
}

/** EndFileTransfer, which wants the whole method back as it was. */
export async function endTransfer(given: Arguments, { job, place }: RestCall): Promise<Answer> {
  const method = required(given.object(REQUEST.usedMethod), REQUEST.usedMethod);
  for (const name of [TRANSFER_METHOD.hostname, TRANSFER_METHOD.basepath]) {
    required(method.text(name), name);
  }
  if (method.long(TRANSFER_METHOD.protocol) !== String(PROTOCOLS.NetworkShare)) {
    const credentials = required(method.object(TRANSFER_METHOD.credentials), TRANSFER_METHOD.credentials);
    for (const name of [CREDENTIALS.username, CREDENTIALS.privateKey, CREDENTIALS.publicKey]) {
      required(credentials.text(name), name);
    }
    await place.keys.end(job, credentials.text(CREDENTIALS.publicKey));
  }
  return answerOf(ENDED, place);
}

/** CloseFileTransfer. */
export async function closeTransfer(given: Arguments, { job, place }: RestCall): Promise<Answer> {
  if (place.habits.transferProtocol !== 'NetworkShare') await place.keys.end(job, given.text(REQUEST.publicKey));
  return answerOf(ENDED, place);
}

function required<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw unreadable(name, `The ${name} field is required.`);
  return value;
}
