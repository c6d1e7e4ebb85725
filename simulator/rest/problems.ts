/**
 * The responses to failures: those of the table, in the form of the release (docs/dev/rest.md 4.2, 4.3).
 */
import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { FailureKind, Release } from '../../src/remote/rest/releases.ts';
import { HttpRefusal } from '../refusals.ts';
import { wordingOf } from './releases.ts';

/** What an operation over REST throws instead of a result. It never leaves the sandbox. */
export class RestFailure extends Error {
  override readonly name = 'RestFailure';
  readonly kind: FailureKind;
  /** What the text names: `{0}` and `{1}` of its words. */
  readonly subjects: readonly string[];

  constructor(kind: FailureKind, ...subjects: readonly string[]) {
    super(`${kind}: ${subjects.join(', ')}`);
    this.kind = kind;
    this.subjects = subjects;
  }
}

/** What is thrown where the answer to a failure is the same in all releases. It never leaves the sandbox either. */
export class AnsweredProblem extends Error {
  override readonly name = 'AnsweredProblem';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`status ${problem.status}`);
    this.problem = problem;
  }
}

export interface Problem {
  readonly status: number;
  readonly body: unknown;
}

/** The answer to a failure. */
export function problemOf({ kind, subjects }: RestFailure, release: Release): Problem {
  const { status, title, text: words } = wordingOf(kind, release.name);
  const text = words.replace(/\{([01])\}/g, (_, index) => subjects[index] ?? '');
  if (release.problem === 'string') return { status, body: text };
  if (release.problem === 'title')
    return { status, body: { type: 'about:blank', title: text, status, traceId: traceId() } };
  return { status, body: { title, status, detail: text } };
}

/** What is thrown for a body that is too long (docs/dev/rest.md 2.3). */
export function tooLong(release: Release, maxBytes: number): Error {
  if (release.tooLong === 'empty') return new HttpRefusal(413, '', { connection: 'close' });
  if (release.tooLong === 'page') return statusPage(400);
  const more = release.tooLong === 400 ? ` The max request body size is ${maxBytes} bytes.` : '';
  const body = { title: `Request body too large.${more}`, status: release.tooLong };
  return new AnsweredProblem({ status: release.tooLong, body });
}

/** ASP.NET's page for a status without a body, with blanks against the pages that a browser shows instead. */
export function statusPage(status: 400 | 404 | 405, headers: Readonly<Record<string, string>> = {}): HttpRefusal {
  const text = `Status Code: ${status}; ${STATUS_CODES[status]}${' '.repeat(500)}`;
  return new HttpRefusal(status, text, { 'content-type': 'text/plain', ...headers });
}

/** ASP.NET's own answer to an argument that cannot be read. */
export function unreadable(member: string, what: string): AnsweredProblem {
  const title = 'One or more validation errors occurred.';
  const type = 'https://tools.ietf.org/html/rfc9110#section-15.5.1';
  const body = { type, title, status: 400, errors: { [member]: [what] }, traceId: traceId() };
  return new AnsweredProblem({ status: 400, body });
}

const traceId = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
