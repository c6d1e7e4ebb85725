/** The questions that were asked of real servers, by their names: the right and the wrong ways of asking. */
import type { RecordedRelease } from './answers.ts';

/** The codes that a question may show. */
export interface Codes {
  readonly own: string;
  /** Of another user. */
  readonly other: string;
}

const UNKNOWN_CODE = '11111111-2222-3333-4444-555555555555';
const UNKNOWN_JOB = 99_999;

type Body = Readonly<Record<string, unknown>> | string;
type Ask = (job: {
  readonly id: number;
  readonly held: number;
  readonly task: number;
  readonly directory: string;
}) => Body;

export const USERS = {
  alice: { username: 'alice', password: 'correct horse', token: 'alices-token' },
  other: { username: 'other', password: 'battery staple', token: 'others-token' },
};

const credentials = (Username: string, Password: string) => ({ Credentials: { Username, Password } });
const partsOf = (entry: Readonly<Record<string, number>> = {}, job?: number): Ask => {
  return ({ id, task }) => ({
    SubmittedJobInfoId: job ?? id,
    TaskFileOffsets: [{ SubmittedTaskInfoId: task, FileType: 3, Offset: 0, ...entry }],
  });
};
const listOf =
  (TaskFileOffsets: unknown): Ask =>
  ({ id }) => ({ SubmittedJobInfoId: id, TaskFileOffsets });
const fileOf =
  (path: (directory: string) => string): Ask =>
  ({ id, directory }) => ({ SubmittedJobInfoId: id, RelativeFilePath: path(directory) });
const ofJob: Ask = ({ id }) => ({ SubmittedJobInfoId: id });
const ofUnknownJob: Ask = () => ({ SubmittedJobInfoId: UNKNOWN_JOB });

/** The bodies of the questions by POST; the session code is put in. */
const BODIES: Readonly<Record<string, Ask>> = {
  'sign-in': () => credentials('alice', USERS.alice.password),
  'sign-in wrong password': () => credentials('alice', 'wrong'),
  'sign-in unknown user': () => credentials('nobody', 'wrong'),
  'sign-in empty object': () => '{}',
  'sign-in no json': () => 'not json',
  'sign-in too long': () => credentials('alice', 'x'.repeat(300)),
  'sign-in other': () => credentials('other', USERS.other.password),
  'unknown operation': () => '{}',
  'parts unknown session': partsOf(),
  'parts malformed session': partsOf(),
  'parts empty session': partsOf(),
  'parts missing job': partsOf({}, UNKNOWN_JOB),
  'parts job 0': partsOf({}, 0),
  'parts foreign task': partsOf({ SubmittedTaskInfoId: 99_999 }),
  'parts negative offset': partsOf({ Offset: -1 }),
  'parts beyond end': partsOf({ Offset: 99_999_999 }),
  'parts no such type': partsOf({ FileType: 9 }),
  'parts empty list': listOf([]),
  'parts null list': listOf(null),
  'parts too long': listOf(Array.from({ length: 20 }, () => ({ SubmittedTaskInfoId: 1, FileType: 0, Offset: 0 }))),
  'parts unsubmitted job': (job) => ({
    ...(partsOf({ SubmittedTaskInfoId: 1 })(job) as object),
    SubmittedJobInfoId: job.held,
  }),
  'parts foreign job': partsOf(),
  'listing by POST': ofJob,
  'file unsubmitted job': ({ held }) => ({ SubmittedJobInfoId: held, RelativeFilePath: '/1/stdout' }),
  'file missing': fileOf((directory) => `/${directory}/nothere`),
  'file directory': fileOf((directory) => `/${directory}`),
  'file bad character': fileOf((directory) => `/${directory}/a$b`),
  'file empty path': fileOf(() => ''),
  'file path 300': fileOf(() => `/${'a'.repeat(299)}`),
  'file path 900': fileOf(() => `/${'a'.repeat(899)}`),
  'file without slash': fileOf((directory) => `${directory}/stdout`),
  'file foreign job': fileOf((directory) => `/${directory}/stdout`),
  'job by POST': ofJob,
  'job old name': ofJob,
  'key missing job': ofUnknownJob,
  'key close unknown': ({ id }) => ({ SubmittedJobInfoId: id, PublicKey: 'ssh-ed25519 AAAA' }),
  'key old name': ofJob,
  'key foreign': ofJob,
  ...Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`key ${index + 1}`, ofJob])),
};

/** The code that a question shows. */
function codeFor(name: string, { own, other }: Codes): string {
  if (name.endsWith('unknown session')) return UNKNOWN_CODE;
  if (name.endsWith('malformed session')) return 'zzz';
  if (name.endsWith('empty session')) return '';
  return name.includes('foreign') && name !== 'parts foreign task' ? other : own;
}

/** The path with its query, and the body; undefined for a question that is not known. */
export function question(
  { name, method, path }: { readonly name: string; readonly method: string; readonly path: string },
  release: RecordedRelease,
  codes: Codes,
): { readonly path: string; readonly body?: string } | undefined {
  const code = codeFor(name, codes);
  if (method === 'GET') return { path: path.replace('…', code) };
  const { jobId, heldJobId, taskId, specificationId } = release;
  const job = { id: Number(jobId), held: Number(heldJobId ?? 0), task: Number(taskId), directory: specificationId };
  const body = BODIES[name]?.(job);
  if (body === undefined) return undefined;
  const isSignIn = name.startsWith('sign-in');
  if (typeof body === 'string') return { path, body };
  return { path, body: JSON.stringify(isSignIn ? body : { ...body, SessionCode: code }) };
}
