/** The two ways in which an answer is not what the contract says. */
import { JobtailError } from '../../errors.ts';

/** The answer breaks the rules of XML, base64 or SOAP; `what` says where. */
export function malformed(what: string): JobtailError {
  return new JobtailError('malformed', `the answer is damaged: ${what}`, {
    hint: 'if it stays so, the service or a proxy in front of it sends broken answers; show this to its operator',
  });
}

/** The answer is sound but is not the one to this request; `what` says why. */
export function unexpected(what: string): JobtailError {
  return new JobtailError('unexpected-answer', `the answer is not the one asked for: ${what}`, {
    hint: 'compare service.fileTransferUrl, service.namespace and service.soapVersion with the WSDL of the service',
  });
}
