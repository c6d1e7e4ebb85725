/**
 * Results as the `soap` package read them, checked against the contract (docs/interface.md 2). Nothing is taken on
 * trust.
 */
import type { Content, Part, PartRequest, Parts, TransferMethod } from '../../agent/ports.ts';
import { keyText, type LiveFileName, parseTaskId } from '../../job.ts';
import { malformed } from '../wrong-answers.ts';
import { type FileType, type Operation, PROTOCOLS } from './contract.ts';

/** SynchronizableFilesExt of a live file (docs/interface.md 2.4). */
export const FILE_TYPE_OF: Readonly<Record<LiveFileName, FileType>> = {
  stdout: 'StandardOutputFile',
  stderr: 'StandardErrorFile',
  log: 'LogFile',
  progress: 'ProgressFile',
};

const FILE_OF = new Map<unknown, LiveFileName>(
  Object.entries(FILE_TYPE_OF).map(([file, type]) => [type, file as LiveFileName]),
);

const LONGEST_PATH = 4_096;

type Fields = Readonly<Record<string, unknown>>;

/** The result element of a response; null if absent, nil or empty. */
export function resultOf(operation: Operation, response: unknown): Fields | null {
  const fields = fieldsOf(response);
  return fields === null ? null : fieldsOf(fields[`${operation}Result`]);
}

/** FileTransferMethodExt. @throws JobtailError malformed */
export function transferMethodOf(result: Fields | null): TransferMethod | null {
  if (result === null) return null;
  const credentials = fieldsOf(result['credentials']);
  return {
    serverHostname: textOf(result['serverHostname']),
    sharedBasepath: textOf(result['sharedBasepath']),
    protocol: protocolOf(result['protocol']),
    credentials:
      credentials === null
        ? null
        : {
            username: textOf(credentials['username']),
            privateKey: textOf(credentials['privateKey']),
            publicKey: textOf(credentials['publicKey']),
          },
  };
}

export interface PartsQuestion {
  readonly wanted: readonly PartRequest[];
  /** The lifted contents; each belongs to the one entry that names its index. */
  readonly texts: readonly Content[];
}

/**
 * Matches the entries of ArrayOfJobFileContentExt to what was asked for, by task and file. The contents of entries that
 * do not match are released.
 * @throws JobtailError malformed
 */
export async function matchParts(result: Fields | null, { wanted, texts }: PartsQuestion): Promise<Parts> {
  const missing = new Map(wanted.map((request) => [keyText(request), request]));
  const parts: Part[] = [];
  const refused: Content[] = [];
  for (const entry of arrayOf(result?.['JobFileContentExt'])) {
    const fields = fieldsOf(entry);
    if (fields === null) continue;
    const content = contentOf(fields['content'], texts);
    const relativePath = pathOf(fields['relativePath']);
    const request = requestOf(fields, missing);
    if (request === undefined) {
      refused.push(content);
      continue;
    }
    missing.delete(keyText(request));
    parts.push({ taskId: request.taskId, file: request.file, offset: request.offset, content, relativePath });
  }
  await Promise.all(refused.map((content) => content.release()));
  return { parts, refused: refused.length };
}

/** The request that an entry answers; servers echo the offset, or leave it nil or 0 (docs/servers.md 1.1). */
function requestOf(fields: Fields, missing: ReadonlyMap<string, PartRequest>): PartRequest | undefined {
  const taskId = parseTaskId(fields['submittedTaskInfoId']);
  const file = FILE_OF.get(fields['fileType']);
  if (taskId === undefined || file === undefined) return undefined;
  const request = missing.get(keyText({ taskId, file }));
  const offset = fields['offset'] ?? null;
  const fits = offset === null || offset === '0' || offset === String(request?.offset);
  return fits ? request : undefined;
}

function contentOf(index: unknown, texts: readonly Content[]): Content {
  if (index === undefined || index === null) return NO_CONTENT;
  const content = typeof index === 'string' ? texts[Number(index)] : undefined;
  if (content === undefined) throw malformed('an entry with more than one content');
  return content;
}

/** An absent content says as little as an empty one. */
const NO_CONTENT: Content = {
  length: 0,
  read: async () => Buffer.alloc(0),
  release: async () => undefined,
};

function protocolOf(value: unknown): TransferMethod['protocol'] {
  const text = textOf(value);
  const protocol = PROTOCOLS.find((known) => known === text);
  if (protocol === undefined && text !== null) throw malformed('a transfer protocol that the contract does not know');
  return protocol ?? null;
}

/** One that is longer than any system's is none: it would be held against each listed name. */
function pathOf(value: unknown): string | null {
  const path = textOf(value);
  return path === null || path.length > LONGEST_PATH ? null : path;
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw malformed('an element stands where a text is expected, or stands there twice');
  return value;
}

function fieldsOf(value: unknown): Fields | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) throw malformed('a text stands where elements are expected');
  return value as Fields;
}

function arrayOf(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}
