/** The transfer method that a service gave, and wants back at the end (docs/rest.md 3.7). */
import type { TransferMethod } from '../../agent/ports.ts';
import { ADDRESSES, CREDENTIALS, PROTOCOLS, TRANSFER_METHOD } from './contract.ts';
import { JsonNumber, JsonObject, jsonObject } from './json.ts';

/** Where the public key alone ends a transfer. */
export const CLOSE_PATH = ADDRESSES.EndFileTransfer[1].path;

/** The whole object as it was given; after a restart, what is left of it, for these releases want all of it. */
export function givenMethod({
  given,
  serverHostname,
  sharedBasepath,
  protocol,
  credentials,
}: TransferMethod): JsonObject {
  if (given instanceof JsonObject) return given;
  return jsonObject({
    [TRANSFER_METHOD.hostname]: serverHostname ?? '',
    [TRANSFER_METHOD.basepath]: sharedBasepath ?? '',
    [TRANSFER_METHOD.protocol]: protocol === null ? undefined : new JsonNumber(String(PROTOCOLS[protocol])),
    [TRANSFER_METHOD.credentials]:
      credentials === null
        ? undefined
        : jsonObject({
            [CREDENTIALS.username]: credentials.username ?? '',
            [CREDENTIALS.privateKey]: credentials.privateKey ?? '',
            [CREDENTIALS.publicKey]: credentials.publicKey ?? '',
          }),
  });
}

/** What of a method nothing may show. */
export function secretsOf(method: TransferMethod | null): string[] {
  const { given, credentials } = method ?? {};
  const inside = given instanceof JsonObject ? given.get(TRANSFER_METHOD.credentials) : undefined;
  const password = inside instanceof JsonObject ? inside.get(CREDENTIALS.password) : undefined;
  return [credentials?.privateKey, credentials?.passphrase, password].filter(
    (secret): secret is string => typeof secret === 'string' && secret !== '',
  );
}
