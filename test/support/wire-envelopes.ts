/** Answers as servers write them, for the tests of the wire. */
import type { Operation } from '../../src/operations.ts';

export const NAMESPACE = 'http://middleware.example/';

export const SOAP_1_1 = 'http://schemas.xmlsoap.org/soap/envelope/';
export const SOAP_1_2 = 'http://www.w3.org/2003/05/soap-envelope';

/** An envelope as ASP.NET writes it. */
export function envelope(body: string, soapNamespace = SOAP_1_1): string {
  return `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${soapNamespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soap:Body>${body}</soap:Body></soap:Envelope>`;
}

/** The response of an operation around its result. */
export function response(operation: Operation, result: string): string {
  return envelope(`<${operation}Response xmlns="${NAMESPACE}">${result}</${operation}Response>`);
}

export function fileResponse(base64: string): string {
  return response(
    'DownloadFileFromCluster',
    `<DownloadFileFromClusterResult>${base64}</DownloadFileFromClusterResult>`,
  );
}

/** Entries as they stand in the answer of DownloadPartsOfJobFilesFromCluster. */
export function partsResponse(...entries: string[]): string {
  const result = 'DownloadPartsOfJobFilesFromClusterResult';
  return response('DownloadPartsOfJobFilesFromCluster', `<${result}>${entries.join('')}</${result}>`);
}

export function entry(content: string, { task = '9001', type = 'StandardOutputFile', offset = '0' } = {}): string {
  return `<JobFileContentExt><content>${content}</content><relativePath>/out</relativePath><offset>${offset}</offset><fileType>${type}</fileType><submittedTaskInfoId>${task}</submittedTaskInfoId></JobFileContentExt>`;
}

export function listResponse(...strings: string[]): string {
  const result = 'ListChangedFilesForJobResult';
  return response('ListChangedFilesForJob', `<${result}>${strings.join('')}</${result}>`);
}

export function fault11(words: string, code = 'soap:Server'): string {
  return envelope(
    `<soap:Fault><faultcode>${code}</faultcode><faultstring>${words}</faultstring><detail /></soap:Fault>`,
  );
}

export function fault12(words: string): string {
  return envelope(
    `<soap:Fault><soap:Code><soap:Value>soap:Receiver</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang="en">${words}</soap:Text></soap:Reason><soap:Detail /></soap:Fault>`,
    SOAP_1_2,
  );
}
