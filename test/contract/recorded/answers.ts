/** What real servers answered (docs/dev/rest.md): a line for each question, bodies cut at 400 characters. */
import { readFileSync } from 'node:fs';
import type { ReleaseName } from '../../../src/remote/rest/releases.ts';

export interface RecordedAnswer {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** With `…` in the place of the session code, and `OTHER` in that of another user; so is the body that was sent. */
  readonly path: string;
  readonly asked?: string;
  readonly status: number;
  readonly type: string | null;
  readonly body: string;
}

/** A release that was asked, with the ids of its job, and of one that is not submitted. */
export interface RecordedRelease {
  readonly version: string;
  readonly release: ReleaseName;
  readonly jobId: string;
  readonly taskId: string;
  readonly specificationId: string;
  readonly heldJobId?: string;
}

export const LATEST: RecordedRelease = {
  ...{ version: '6.3.2', release: '6.3', jobId: '5', taskId: '5', specificationId: '5', heldJobId: '1' },
};
const FIRST = { jobId: '1', taskId: '1', specificationId: '1' };

export const RECORDED: readonly RecordedRelease[] = [
  { version: '2.0.0', release: '2.0', jobId: '4', taskId: '83', specificationId: '63' },
  { ...FIRST, version: '3.1.0', release: '3.1' },
  { ...FIRST, version: '4.3.0', release: '4.3', heldJobId: '41' },
  { ...FIRST, version: '5.0.0', release: '5.0' },
  LATEST,
];

/** The lines of a recording; the type is what the caller says that it is. */
export function linesOf<Line>(file: string): Line[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

/** The longest body that was recorded whole. */
const RECORDED_CHARACTERS = 400;

/** Whether all of the body was recorded. */
export const isWhole = ({ body }: Pick<RecordedAnswer, 'body'>) =>
  body.length < RECORDED_CHARACTERS && !body.includes('…');

/** What has to be the same in two answers: all but names, numbers, codes, paths and times, up to where the recording ends. */
export function comparable({ status, type, body }: Pick<RecordedAnswer, 'status' | 'type' | 'body'>) {
  if (type === null || !type.startsWith('application/json')) {
    return { status, type, body: body.slice(0, RECORDED_CHARACTERS) };
  }
  return { status, type, body: status === 200 ? skeletonOf(body) : wordsOf(body) };
}

/** The words of a failure. */
function wordsOf(body: string): string {
  return body
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'CODE')
    .replaceAll(/\b00-[\da-f]{32}-[\da-f]{16}-00\b/g, 'TRACE')
    .replaceAll(/'\/[^']*'/g, "'/PATH'")
    .replaceAll(/\d+/g, 'N');
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|"(?:[^"\\]|\\.)*$|-?\d[\d.]*/g;

/** Members in their order and the kinds of their values; of a list, the first element, and whether there is one. */
function skeletonOf(body: string): string {
  const kinds = body.replaceAll(TOKEN, (token: string, text: string | undefined, colon: string | undefined) => {
    if (colon !== undefined) return token;
    if (!token.startsWith('"')) return 'N';
    // Where the recording ends within a string, this may be a member.
    const kind = kindOf(token.slice(1, text === undefined ? undefined : -1));
    return text === undefined && kind === 'TEXT' ? '' : kind;
  });
  const [first = ''] = kinds.replaceAll('[TEXT]', '[]').split('},{');
  return first;
}

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/, 'CODE'],
  [/^0001-01-01T00:00:00$/, 'NEVER'],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/, 'SECOND'],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,7}$/, 'MOMENT'],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'UTC'],
];

function kindOf(text: string): string {
  const key = /^-----BEGIN [A-Z ]+-----/.exec(text);
  return key?.[0] ?? KINDS.find(([form]) => form.test(text))?.[1] ?? 'TEXT';
}
