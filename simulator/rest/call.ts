/** What an operation of a release is given, and what it answers with. */
import type { Release } from '../../src/remote/rest/releases.ts';
import type { Answer } from '../exchange.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import type { SandboxUser } from '../signin/sessions.ts';
import { jsonOf } from './json.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export interface RestCall extends OperationCall {
  readonly release: Release;
  readonly place: SandboxPlace;
  readonly user: SandboxUser;
}

/** A whole value, or a text of JSON in pieces; nothing is 204. */
export function answerOf(value: unknown): Answer {
  if (value === null || value === undefined) return { status: 204, headers: {}, body: '' };
  return { status: 200, headers: { 'content-type': JSON_TYPE }, body: jsonOf(value) };
}

export function streamed(body: AsyncIterable<string>): Answer {
  return { status: 200, headers: { 'content-type': JSON_TYPE }, body };
}
