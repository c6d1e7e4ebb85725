/** Checks results against the contract (docs/dev/rest.md 3). */
import type { Content, TransferMethod } from '../../agent/ports.ts';
import { type LiveFileName, parseLong, parseTaskId } from '../../job.ts';
import { NO_CONTENT, type PartEntry, usablePath } from '../content/response-texts.ts';
import { malformed } from '../wrong-answers.ts';
import { ADDRESSES, CREDENTIALS, FILE_TYPES, PART, PROTOCOLS, TRANSFER_METHOD } from './contract.ts';
import { unexpected } from './refusals.ts';
import { type Json, JsonNumber, JsonObject, jsonObject, LiftedText } from './requests.ts';

const FILE_OF = new Map(Object.entries(FILE_TYPES).map(([file, type]) => [String(type), file as LiveFileName]));

const HIGHEST_PORT = 65_535;

function listOf(rest: Json | undefined): readonly Json[] {
  if (rest === null) return [];
  if (!Array.isArray(rest)) throw unexpected('it contains no list');
  return rest;
}

export function requireLifted(rest: Json | undefined): void {
  if (listOf(rest).some((item) => item !== null)) throw unexpected('its list contains something else');
}

/** The entries of parts; each lifted text belongs to the entry with its index. @throws JobtailError malformed */
export function entriesOf(rest: Json | undefined, texts: readonly Content[]): PartEntry[] {
  return listOf(rest).flatMap((entry) => {
    if (entry === null) return [];
    const fields = objectOf(entry);
    return {
      taskId: parseTaskId(numberOf(fields.get(PART.taskId))),
      file: FILE_OF.get(numberOf(fields.get(PART.fileType)) ?? ''),
      offset: numberOf(fields.get(PART.offset)),
      content: contentOf(fields.get(PART.content), texts),
      relativePath: usablePath(textOf(fields.get(PART.relativePath))),
    };
  });
}

/**
 * The method, with the original object, which some services require at the end. @throws JobtailError malformed,
 * unexpected-answer
 */
export function transferMethodOf(rest: Json | undefined): TransferMethod | null {
  if (rest === undefined || rest === null) return null;
  const fields = objectOf(rest);
  const credentials = fields.get(TRANSFER_METHOD.credentials);
  const port = portOf(fields.get(TRANSFER_METHOD.port));
  return {
    serverHostname: textOf(fields.get(TRANSFER_METHOD.hostname)),
    sharedBasepath: textOf(fields.get(TRANSFER_METHOD.basepath)),
    protocol: protocolOf(fields.get(TRANSFER_METHOD.protocol)),
    ...(port === undefined ? {} : { port }),
    credentials: credentials === undefined || credentials === null ? null : credentialsOf(objectOf(credentials)),
    given: fields,
  };
}

function credentialsOf(fields: JsonObject): TransferMethod['credentials'] {
  const passphrase = textOf(fields.get(CREDENTIALS.passphrase));
  const certificate = textOf(fields.get(CREDENTIALS.certificate));
  return {
    username: textOf(fields.get(CREDENTIALS.username)),
    privateKey: textOf(fields.get(CREDENTIALS.privateKey)),
    publicKey: textOf(fields.get(CREDENTIALS.publicKey)),
    ...(passphrase === null || passphrase === '' ? {} : { passphrase }),
    ...(certificate === null || certificate === '' ? {} : { certificate }),
  };
}

function contentOf(value: Json | undefined, texts: readonly Content[]): Content {
  if (value === undefined || value === null) return NO_CONTENT;
  const content = value instanceof LiftedText ? texts[value.index] : undefined;
  if (content === undefined) throw malformed('a content that is no text');
  return content;
}

/** All SSH variants are one method here. */
function protocolOf(value: Json | undefined): TransferMethod['protocol'] {
  const number = numberOf(value);
  if (number === null) return null;
  if (number === String(PROTOCOLS.NetworkShare)) return 'NetworkShare';
  if (number === String(PROTOCOLS.SftpScp) || number === String(PROTOCOLS.LocalSftpScp)) return 'SftpScp';
  throw unexpected('its transfer protocol is none that files can be fetched by');
}

function portOf(value: Json | undefined): number | undefined {
  const number = numberOf(value);
  // 0 is the default of an unset number.
  if (number === null || number === '0') return undefined;
  const port = Number(parseLong(number));
  if (!(port > 0 && port <= HIGHEST_PORT)) throw malformed('a port that is none');
  return port;
}

function textOf(value: Json | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw malformed('something else stands where a text is expected');
  return value;
}

/** Servers may quote numbers. */
function numberOf(value: Json | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (value instanceof JsonNumber) return value.text;
  if (typeof value !== 'string') throw malformed('something else stands where a number is expected');
  return value;
}

function objectOf(value: Json): JsonObject {
  if (value instanceof JsonObject) return value;
  throw unexpected('something else stands where an object is expected');
}

/** Where the public key alone ends a transfer. */
export const CLOSE_PATH = ADDRESSES.EndFileTransfer[1].path;

/** The original object; after a restart, its stored part. These releases require all of it. */
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

export function secretsOf(method: TransferMethod | null): string[] {
  const { given, credentials } = method ?? {};
  const inside = given instanceof JsonObject ? given.get(TRANSFER_METHOD.credentials) : undefined;
  const password = inside instanceof JsonObject ? inside.get(CREDENTIALS.password) : undefined;
  return [credentials?.privateKey, credentials?.passphrase, password].filter(
    (secret): secret is string => typeof secret === 'string' && secret !== '',
  );
}
