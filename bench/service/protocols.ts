/** What the service writes around and into its answers, in either protocol. */

import { escapeText } from '../../simulator/soap/answer.ts';
import type { Operation } from '../../src/operations.ts';
import { FILE_TYPES } from '../../src/remote/rest/contract.ts';
import { JOB_ID, NAMESPACE, TASK_ID } from './job.ts';

export type Protocol = 'soap' | 'rest';

/** What stands before and after a bulky text. */
interface Around {
  readonly before: string;
  readonly after: string;
}

/** A part of the live file. */
interface LogPart {
  readonly path: string;
  readonly offset: number;
}

interface Writing {
  readonly contentType: string;
  /** A text as it stands in a document. */
  readonly escaped: (text: string) => string;
  /** Around the base64 of a whole file. */
  readonly file: Around;
  /** Around the text of a part. */
  readonly part: (part: LogPart) => Around;
  /** The document of a listing. */
  readonly listing: (names: readonly string[]) => string;
  /** The document that says nothing. */
  readonly nothing: (operation: Operation) => string;
}

const SOAP = 'http://schemas.xmlsoap.org/soap/envelope/';
const TYPES = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"';
const START = `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${SOAP}" ${TYPES}><soap:Body>`;

/** Opening and closing tags around the content of a response. */
function within(operation: Operation, ...names: string[]): Around {
  const open = names.map((name) => `<${name}>`).join('');
  const close = names
    .toReversed()
    .map((name) => `</${name}>`)
    .join('');
  const response = `${operation}Response`;
  return {
    before: `${START}<${response} xmlns="${NAMESPACE}">${open}`,
    after: `${close}</${response}></soap:Body></soap:Envelope>`,
  };
}

/** The document of a response with this content. */
export function soapDocument(operation: Operation, content: string): string {
  const { before, after } = within(operation);
  return before + content + after;
}

const soap: Writing = {
  contentType: 'text/xml; charset=utf-8',
  escaped: escapeText,
  file: within('DownloadFileFromCluster', 'DownloadFileFromClusterResult'),
  part: ({ path, offset }) => {
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const { before, after } = within(operation, `${operation}Result`, 'JobFileContentExt');
    const fields = `<relativePath>${path}</relativePath><offset>${offset}</offset><fileType>StandardOutputFile</fileType><submittedTaskInfoId>${TASK_ID}</submittedTaskInfoId>`;
    return { before: `${before}<content>`, after: `</content>${fields}${after}` };
  },
  listing: (names) => {
    const strings = names.map((name) => `<string>${name}</string>`).join('');
    const result = `<ListChangedFilesForJobResult>${strings}</ListChangedFilesForJobResult>`;
    return soapDocument('ListChangedFilesForJob', result);
  },
  nothing: (operation) => soapDocument(operation, ''),
};

/** ASP.NET escapes these besides what JSON requires: controls, and whatever is two units of UTF-16. */
const ESCAPED = /[\u007f-\u009f\ud800-\udfff]/g;

const rest: Writing = {
  contentType: 'application/json; charset=utf-8',
  escaped: (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(ESCAPED, (unit) => `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`),
  file: { before: '"', after: '"' },
  part: ({ path, offset }) => {
    const fields = {
      RelativePath: path,
      Offset: offset,
      FileType: FILE_TYPES.stdout,
      SubmittedTaskInfoId: Number(TASK_ID),
    };
    return { before: `[{"Content":"`, after: `",${JSON.stringify(fields).slice(1)}]` };
  },
  listing: (names) => JSON.stringify(names),
  nothing: () => 'null',
};

export const WRITING: Readonly<Record<Protocol, Writing>> = { soap, rest };

/** The job as REST tells of it: one that runs. */
export const REST_JOB = `{"Id":${JOB_ID},"Name":"bench","State":8,"Tasks":[{"Id":${TASK_ID},"Name":"bench","State":8}]}`;
