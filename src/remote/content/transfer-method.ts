/** FileTransferMethodExt (docs/dev/soap.md 2.1), with the additions of some services (docs/dev/rest.md 3.7). */
import type { TransferMethod } from '../../agent/ports/server.ts';
import type { Secrets } from '../../redact.ts';
import { malformed } from '../wrong-responses.ts';
import { type Fields, fieldsOf, longOf, textOf, type Value } from './values.ts';

const HIGHEST_PORT = 65_535;

type TransferProtocol = TransferMethod['protocol'];

/** Adds the secrets to `secrets`. `protocols`: by the text of the service. @throws JobtailError malformed */
export function transferMethodOf(
  value: Value | undefined,
  protocols: ReadonlyMap<string, TransferProtocol>,
  secrets: Secrets,
): TransferMethod | null {
  const fields = fieldsOf(value);
  if (fields === null) return null;
  const credentials = fieldsOf(fields.get('credentials'));
  keepSecret(textOf(credentials?.get('password')), secrets);
  const port = portOf(fields.get('port'));
  const method = {
    serverHostname: textOf(fields.get('serverhostname')),
    sharedBasepath: textOf(fields.get('sharedbasepath')),
    protocol: protocolOf(textOf(fields.get('protocol')), protocols),
    ...(port === undefined ? {} : { port }),
    credentials: credentials === null ? null : credentialsOf(credentials),
  };
  keepSecrets(method, secrets);
  return method;
}

export function keepSecrets({ credentials }: TransferMethod, secrets: Secrets): void {
  keepSecret(credentials?.privateKey, secrets);
  keepSecret(credentials?.passphrase, secrets);
}

function keepSecret(secret: string | null | undefined, secrets: Secrets): void {
  if (typeof secret === 'string' && secret !== '') secrets.add('transfer-key', secret);
}

function credentialsOf(fields: Fields): TransferMethod['credentials'] {
  const passphrase = textOf(fields.get('passphrase')) ?? '';
  const certificate = textOf(fields.get('privatekeycertificate')) ?? '';
  return {
    username: textOf(fields.get('username')),
    privateKey: textOf(fields.get('privatekey')),
    publicKey: textOf(fields.get('publickey')),
    ...(passphrase === '' ? {} : { passphrase }),
    ...(certificate === '' ? {} : { certificate }),
  };
}

function protocolOf(text: string | null, protocols: ReadonlyMap<string, TransferProtocol>): TransferProtocol {
  if (text === null) return null;
  const protocol = protocols.get(text);
  if (protocol === undefined) throw malformed('its transfer protocol is none that files can be fetched by');
  return protocol;
}

function portOf(value: Value | undefined): number | undefined {
  const port = Number(longOf(value) ?? 0);
  // 0 is the default of an unset number.
  if (port === 0) return undefined;
  if (!(port > 0 && port <= HIGHEST_PORT)) throw malformed('a port that is none');
  return port;
}
