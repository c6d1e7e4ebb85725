/** Faults, and the keys of the configuration that an error names. */
import type { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Fields, Value } from '../content/values.ts';
import * as wrongResponses from '../wrong-responses.ts';
import { type ServiceName, serviceOf } from './contract.ts';

const URL_KEYS: Readonly<Record<ServiceName, string>> = {
  FileTransferWs: 'service.fileTransferUrl',
  JobManagementWs: 'service.jobsUrl',
};

export const urlKeyOf = (operation: Operation): string => URL_KEYS[serviceOf(operation)];

export function unexpected(operation: Operation, what: string): JobtailError {
  const keys = `${urlKeyOf(operation)}, service.namespace and service.soapVersion`;
  return wrongResponses.unexpected(what, `compare ${keys} with the WSDL of the service`);
}

/** The code and the first reason of a fault, in SOAP 1.1 and 1.2; there may be a reason for each language. */
export function faultWords(fault: Fields): string {
  const texts = [
    fault.get('faultcode') ?? inside(fault.get('code'), 'value'),
    fault.get('faultstring') ?? inside(fault.get('reason'), 'text'),
  ].map((value) => [value].flat()[0]);
  return texts.filter((text) => typeof text === 'string' && text.trim() !== '').join(': ');
}

const inside = (value: Value | undefined, name: string): Value | undefined =>
  value instanceof Map ? (value as Fields).get(name) : undefined;
