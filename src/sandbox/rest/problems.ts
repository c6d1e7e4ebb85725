/** The failures of the REST interface: status, title and text by the release and the language (docs/rest.md 4.2, 4.3). */
import { randomBytes } from 'node:crypto';
import { HttpRefusal } from '../refusals.ts';
import type { Release } from './releases.ts';

export type Language = 'en' | 'cs';

/** Failures that the releases answer differently. */
type FailureKind = 'sessionLost' | 'wrongSecret' | 'invalid' | 'noSuchJob' | 'foreignJob' | 'noSuchFile' | 'external';

/** What an operation over REST throws instead of a result. It never leaves the sandbox. */
export class RestFailure extends Error {
  override readonly name = 'RestFailure';
  readonly kind: FailureKind;
  /** What the text names: a code, an id, a name, or what was said outside of the service. */
  readonly subject: string;

  constructor(kind: FailureKind, subject = '') {
    super(`${kind}: ${subject}`);
    this.kind = kind;
    this.subject = subject;
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

/** The texts; `{}` stands for the subject. */
const TEXTS: Readonly<Record<FailureKind, Readonly<Record<Language, string>>>> = {
  sessionLost: {
    en: 'Session code "{}" is not valid or has already expired.',
    cs: 'Kód relace "{}" není platný nebo již vypršel.',
  },
  wrongSecret: { en: 'Wrong user name or password.', cs: 'Chybné uživatelské jméno nebo heslo.' },
  invalid: { en: 'The request is not valid: {}', cs: 'Požadavek není platný: {}' },
  noSuchJob: { en: 'Specified job with id {} does not exist.', cs: 'Úloha s id {} neexistuje.' },
  foreignJob: { en: 'Logged user is not submitter of job {}.', cs: 'Přihlášený uživatel nezadal úlohu {}.' },
  noSuchFile: { en: 'File {} was not found.', cs: 'Soubor {} nebyl nalezen.' },
  external: { en: '{}', cs: '{}' },
};

/** Titles of problems, where the status does not say another one. */
const TITLES: Readonly<Record<FailureKind, string>> = {
  sessionLost: 'Session Code Authentication Problem',
  wrongSecret: 'Authentication Problem',
  invalid: 'Validation Problem',
  noSuchJob: 'Validation Problem',
  foreignJob: 'External Problem',
  noSuchFile: 'Invalid Request',
  external: 'External Problem',
};
const TITLES_OF_STATUS: Readonly<Record<string, string>> = {
  'sessionLost 500': 'External Problem',
  'wrongSecret 502': 'External Service Error',
  'wrongSecret 401': 'Authentication Failed',
  'invalid 400': 'Invalid Request',
  'foreignJob 403': 'Access Forbidden',
  'noSuchFile 500': 'External Problem',
};

export interface Problem {
  readonly status: number;
  readonly body: unknown;
}

/** The answer to a failure. */
export function problemOf({ kind, subject }: RestFailure, release: Release, language: Language): Problem {
  // The job of another user may be no other answer than that to a lost session.
  const alike = kind === 'foreignJob' && release.foreignJob === 'session-lost';
  const status = alike ? release.sessionLost : Number(release[kind]);
  const text = TEXTS[kind][language].replaceAll('{}', () => subject);
  if (release.problem === 'string') return { status, body: text };
  if (release.problem === 'title')
    return { status, body: { type: 'about:blank', title: text, status, traceId: traceId() } };
  const title = TITLES_OF_STATUS[`${kind} ${status}`] ?? TITLES[alike ? 'sessionLost' : kind];
  return { status, body: { title, status, detail: text } };
}

/** What is thrown for a body that is too long (docs/rest.md 2.3). */
export function tooLong(release: Release, maxBytes: number): Error {
  if (release.tooLong === 'empty') return new HttpRefusal(413);
  const more = release.tooLong === 400 ? ` The max request body size is ${maxBytes} bytes.` : '';
  const body = { title: `Request body too large.${more}`, status: release.tooLong };
  return new AnsweredProblem({ status: release.tooLong, body });
}

/** ASP.NET's own answer to an argument that cannot be read. */
export function unreadable(member: string, what: string): AnsweredProblem {
  const title = 'One or more validation errors occurred.';
  const type = 'https://tools.ietf.org/html/rfc9110#section-15.5.1';
  const body = { type, title, status: 400, traceId: traceId(), errors: { [member]: [what] } };
  return new AnsweredProblem({ status: 400, body });
}

/** The first language of `Accept-Language` that there is. */
export function languageOf(line: string | undefined, usual: Language): Language {
  const asked = (line ?? '').split(',').map((part) => part.trim().slice(0, 2).toLowerCase());
  return asked.find((one): one is Language => one === 'en' || one === 'cs') ?? usual;
}

const traceId = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
