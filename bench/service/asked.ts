/** What a request asks for, in either protocol. */
import type { IncomingMessage } from 'node:http';
import type { Operation } from '../../src/operations.ts';
import { DEFAULT_PATH, REQUEST } from '../../src/remote/rest/contract.ts';
import { ADDRESSES, addressesOf } from '../../src/remote/rest/releases.ts';
import type { Protocol } from './protocols.ts';

export interface Asked {
  readonly protocol: Protocol;
  readonly operation: Operation;
  readonly jobId: string;
  /** Of a whole file. */
  readonly path: string;
  /** Of the first part. */
  readonly offset: number;
}

const OPERATIONS = Object.keys(ADDRESSES) as Operation[];

/** Undefined for what is no operation. */
export function askedBy({ url = '', method = '' }: IncomingMessage, body: string): Asked | undefined {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const isRest = pathname.startsWith(`${DEFAULT_PATH}/`);
  const operation = isRest
    ? operationAt(method, pathname.slice(DEFAULT_PATH.length + 1))
    : OPERATIONS.find((known) => body.includes(known));
  if (operation === undefined) return undefined;
  const names = isRest ? REQUEST : { jobId: 'submittedJobInfoId', path: 'relativeFilePath', offset: 'offset' };
  const inBody = (name: string) =>
    (isRest ? new RegExp(`"${name}":"?([^",}]*)`) : new RegExp(`<(?:\\w+:)?${name}>([^<]*)<`)).exec(body)?.[1];
  const field = (name: string) => searchParams.get(name) ?? inBody(name) ?? '';
  return {
    protocol: isRest ? 'rest' : 'soap',
    operation,
    jobId: field(names.jobId),
    path: field(names.path),
    offset: Number(field(names.offset)),
  };
}

function operationAt(verb: string, path: string): Operation | undefined {
  return OPERATIONS.find((operation) =>
    addressesOf(operation).some((address) => address.verb === verb && address.path === path),
  );
}
