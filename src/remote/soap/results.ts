/** Checks results of the `soap` package against the contract (docs/dev/soap.md 2). */
import type { Content, TransferMethod } from '../../agent/ports.ts';
import { parseTaskId } from '../../job.ts';
import type { Operation } from '../../operations.ts';
import { NO_CONTENT, type PartEntry, usablePath } from '../content/response-texts.ts';
import { malformed } from '../wrong-answers.ts';
import { fileOfType, PROTOCOLS } from './contract.ts';

type Fields = Readonly<Record<string, unknown>>;

export function resultOf(operation: Operation, response: unknown): Fields | null {
  const fields = fieldsOf(response);
  return fields === null ? null : fieldsOf(fields[`${operation}Result`]);
}

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

/**
 * The entries of ArrayOfJobFileContentExt; each lifted text belongs to the entry with its index. @throws JobtailError
 * malformed
 */
export function entriesOf(result: Fields | null, texts: readonly Content[]): PartEntry[] {
  return arrayOf(result?.['JobFileContentExt']).flatMap((entry) => {
    const fields = fieldsOf(entry);
    if (fields === null) return [];
    return {
      taskId: parseTaskId(fields['submittedTaskInfoId']),
      file: fileOfType(fields['fileType']),
      offset: textOf(fields['offset']),
      content: contentOf(fields['content'], texts),
      relativePath: usablePath(textOf(fields['relativePath'])),
    };
  });
}

function contentOf(index: unknown, texts: readonly Content[]): Content {
  if (index === undefined || index === null) return NO_CONTENT;
  const content = typeof index === 'string' ? texts[Number(index)] : undefined;
  if (content === undefined) throw malformed('an entry with more than one content');
  return content;
}

function protocolOf(value: unknown): TransferMethod['protocol'] {
  const text = textOf(value);
  const protocol = PROTOCOLS.find((known) => known === text);
  if (protocol === undefined && text !== null) throw malformed('a transfer protocol that is not in the contract');
  return protocol ?? null;
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
