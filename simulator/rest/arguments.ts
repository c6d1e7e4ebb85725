/** Reads the arguments of a call as ASP.NET does: names in any case, numbers of 64 bits, and nothing minds unknown ones. */

import type { IncomingMessage } from 'node:http';
import { parseLong } from '../../src/job.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import { readBody, readMediaType } from '../exchange.ts';
import { HttpRefusal } from '../refusals.ts';
import { tooLong, unreadable } from './problems.ts';

/** A number, and a text that is one, is the text. */
type Value = string | boolean | null | readonly Value[] | { readonly [name: string]: Value };

/** A string, or a number; outside of strings, JSON has digits only in numbers. */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

export class Arguments {
  readonly #members: ReadonlyMap<string, Value>;

  private constructor(members: Iterable<readonly [string, Value]>) {
    this.#members = new Map([...members].map(([name, value]) => [name.toLowerCase(), value]));
  }

  /** Those of a query. */
  static ofQuery(query: URLSearchParams): Arguments {
    return new Arguments(query);
  }

  /** Those of a body. Throws what the release answers to one that is too long, is no JSON, or is no object. */
  static async ofBody(request: IncomingMessage, maxBytes: number, release: Release): Promise<Arguments> {
    const body = await readBody(request, maxBytes).catch((error: unknown) => {
      throw error instanceof HttpRefusal ? tooLong(release, maxBytes) : error;
    });
    if (readMediaType(request.headers['content-type'] ?? '').type !== 'application/json') throw new HttpRefusal(415);
    return Arguments.#of(parse(body), '$');
  }

  static #of(value: Value | undefined, name: string): Arguments {
    if (typeof value === 'object' && value !== null && !isList(value)) return new Arguments(Object.entries(value));
    throw unreadable(name, 'An object was expected.');
  }

  /** A number of 64 bits as decimal text; one that is missing is 0. */
  long(name: string): string {
    const value = this.#value(name);
    const long = typeof value === 'string' ? parseLong(value) : value === undefined ? '0' : undefined;
    if (long === undefined) throw unreadable(name, 'The JSON value could not be converted to System.Int64.');
    return long;
  }

  /** Undefined if it is missing or null. */
  text(name: string): string | undefined {
    const value = this.#value(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string') return value;
    throw unreadable(name, 'The JSON value could not be converted to System.String.');
  }

  /** Undefined if it is missing or null. */
  object(name: string): Arguments | undefined {
    const value = this.#value(name);
    return value === undefined || value === null ? undefined : Arguments.#of(value, name);
  }

  /** A list of objects, each of them perhaps null; null if it is missing or null. */
  list(name: string): readonly (Arguments | null)[] | null {
    const value = this.#value(name);
    if (value === undefined || value === null) return null;
    if (!isList(value)) throw unreadable(name, 'A list was expected.');
    return value.map((one) => (one === null ? null : Arguments.#of(one, name)));
  }

  #value(name: string): Value | undefined {
    return this.#members.get(name.toLowerCase());
  }
}

const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

/** Numbers become texts, so that none is rounded. */
function parse(body: Buffer): Value {
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    JSON.parse(text);
    return JSON.parse(text.replace(STRING_OR_NUMBER, (found) => (found.startsWith('"') ? found : `"${found}"`)));
  } catch {
    throw unreadable('$', unparsable(text));
  }
}

/** The words of System.Text.Json for a text that is no JSON from its first character on, and much the same for others. */
function unparsable(text: string): string {
  const literal = ['null', 'true', 'false'].find((word) => word.startsWith(text.charAt(0)) && text !== '');
  const same = [...text].findIndex((character, index) => character !== literal?.[index]);
  return literal === undefined
    ? `'${text.charAt(0)}' is an invalid start of a value. Path: $ | LineNumber: 0 | BytePositionInLine: 0.`
    : `'${text}' is an invalid JSON literal. Expected the literal '${literal}'. Path: $ | LineNumber: 0 | BytePositionInLine: ${same}.`;
}
