/**
 * Arguments of requests, checked before they are written: the `soap` package passes some texts on unescaped, and XML
 * has no way to write some characters.
 */
import type { Grant, PartRequest, TransferMethod } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import { NOT_XML } from './answer/xml-text.ts';
import { FILE_TYPE_OF } from './contract.ts';

/** The fields of a request in the order of the contract, which the `soap` package does not mend. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a request, with the session at their end (docs/interface.md 4.1). */
export function inSession(fields: Fields, grant: Grant): Fields {
  return grant.kind === 'session' ? { ...fields, sessionCode: secretArgument(grant.code) } : fields;
}

/** ArrayOfTaskFileOffsetExt (docs/interface.md 2.5). @throws JobtailError usage */
export function taskFileOffsets(wanted: readonly PartRequest[]): Fields {
  return {
    TaskFileOffsetExt: wanted.map(({ taskId, file, offset }) => ({
      submittedTaskInfoId: taskId,
      fileType: FILE_TYPE_OF[file],
      offset: offsetArgument(offset),
    })),
  };
}

/** As text: a large number would be written with an exponent. */
function offsetArgument(offset: number): string {
  if (Number.isSafeInteger(offset)) return String(offset);
  throw new JobtailError('usage', `the offset ${offset} is no whole number`);
}

/** FileTransferMethodExt (docs/interface.md 2.1): what is null is left out, where the contract does not want it nil. */
export function transferMethodArgument(method: TransferMethod): Fields {
  const { serverHostname, sharedBasepath, protocol, credentials } = method;
  const texts = (fields: Readonly<Record<string, string | null>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, text]) => (text === null ? [] : [[name, textArgument(text, name)]])),
    );
  return {
    ...texts({ serverHostname, sharedBasepath }),
    protocol,
    ...(credentials === null ? {} : { credentials: texts({ ...credentials }) }),
  };
}

/** A text as it is. @throws JobtailError usage if no request can hold it */
export function textArgument(text: string, name: string): string {
  if (isWritable(text)) return text;
  throw new JobtailError('usage', `the ${name} holds characters that no SOAP request can hold`, {
    hint: 'the service cannot send it',
  });
}

function secretArgument(code: string): string {
  if (isWritable(code)) return code;
  throw new JobtailError('config', 'the session code holds characters that no SOAP request can hold', {
    hint: 'look at auth.sessionCodeFile, or at auth.sessionCodeField if the code comes from a sign-in',
  });
}

/** A text that looks like a CDATA section would be taken for one. */
function isWritable(text: string): boolean {
  return !NOT_XML.test(text) && !text.startsWith('<![CDATA[');
}
