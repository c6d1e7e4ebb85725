/** Each row of the table of releases is observed: in what the simulated cluster answers, or in what the agent concludes. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { problemOf as answerTo, RestFailure } from '../../../simulator/rest/problems.ts';
import { releaseOf, valueAt } from '../../../simulator/rest/releases.ts';
import { Sandbox } from '../../../simulator/sandbox.ts';
import { serviceSection } from '../../../src/config/service-schema.ts';
import type { Operation } from '../../../src/operations.ts';
import { problemOf } from '../../../src/remote/problem.ts';
import { refusalOf } from '../../../src/remote/refusals.ts';
import {
  ADDRESSES,
  addressesOf,
  FAILURES,
  type FailureKind,
  RELEASE_NAMES,
  type ReleaseName,
  ROWS,
  type Row,
  valuesOf,
} from '../../../src/remote/rest/releases.ts';
import { signInRefusal } from '../../../src/remote/signin/refusal.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { remoteParts } from '../../support/wire-remote.ts';

const USER = { username: 'alice', password: 'correct horse', token: 'alices-token' };

/** What is asked of one release, for a row whose value was another one before. */
interface Place {
  readonly release: ReleaseName;
  readonly before: unknown;
  readonly now: unknown;
  readonly code: string;
  /** A job of its own. */
  readonly jobId: string;
  readonly task: string;
  /** At the address that the release has. */
  ask(operation: Operation, members?: object, bytes?: number): Promise<string>;
  send(method: string, path: string, body?: string, headers?: Readonly<Record<string, string>>): Promise<string>;
}

type Ask = (place: Place) => Promise<unknown>;

const between = (before: unknown, now: unknown) => Math.ceil((Number(before) + Number(now)) / 2);

/** A body with so many bytes that only one of the two limits allows it. */
const ofBytes =
  (operation: Operation): Ask =>
  ({ ask, before, now }) =>
    ask(operation, {}, between(before, now));

const signIn =
  (operation: string): Ask =>
  ({ send, before, now }) =>
    send('POST', `UserAndLimitationManagement/${operation}`, '{"Credentials":{}}'.padEnd(between(before, now)));

const fileOf =
  (...names: ((place: Place) => string)[]): Ask =>
  (place) =>
    Promise.all(names.map((name) => place.ask('DownloadFileFromCluster', { RelativeFilePath: name(place) })));

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const job: Ask = ({ ask }) => ask('GetCurrentInfoForJob');
const key: Ask = ({ ask }) => ask('GetFileTransferMethod');

const OBSERVED_BY: Readonly<Record<Exclude<keyof typeof ROWS, 'callsAtATime'>, Ask>> = {
  unknownPath: ({ send }) => send('POST', 'FileTransfer/Nothing', '{}'),
  maxPasswordBytes: signIn('AuthenticateUserPassword'),
  maxTokenBytes: signIn('AuthenticateUserOpenId'),
  maxPartsBytes: ofBytes(PARTS),
  maxReadBytes: ofBytes('ListChangedFilesForJob'),
  maxJobsBytes: ofBytes('ListJobsForCurrentUser'),
  maxFileBytes: ofBytes('DownloadFileFromCluster'),
  maxEndBytes: ofBytes('EndFileTransfer'),
  tooLong: ({ ask }) => ask(PARTS, {}, 2000),
  decoder: ({ ask, task }) =>
    ask(PARTS, { TaskFileOffsets: [{ SubmittedTaskInfoId: Number(task), FileType: 3, Offset: 0 }] }),
  names: ({ ask }) => ask('ListChangedFilesForJob'),
  slash: fileOf(({ task, jobId }) => `${jobId}/9${task}/sub/stdout.txt`),
  pathForms: fileOf(
    ({ task }) => `/9${task}/sub/stdout.txt`,
    ({ task, jobId }) => `/${jobId}/9${task}/sub/stdout.txt`,
  ),
  maxNameLength: fileOf(() => `/${'x'.repeat(100)}`),
  nameCharacters: fileOf(() => '/1/a$b'),
  jobMembers: job,
  taskMembers: job,
  noEnd: job,
  methodMembers: key,
  credentialsMembers: key,
  keyFormat: (place) => key(place),
  keysCount: async ({ ask }) => {
    const { Credentials } = JSON.parse(await ask('GetFileTransferMethod')) as { Credentials: { PublicKey: string } };
    await ask('EndFileTransfer', { PublicKey: Credentials.PublicKey });
    return ask('GetFileTransferMethod');
  },
  health: ({ send }) => send('GET', 'Health'),
  lexisToken: ({ send }) => send('POST', 'UserAndLimitationManagement/AuthenticateLexisToken', '{}'),
  headers: ({ send, jobId, release }) => {
    const [address] = valueAt(ADDRESSES.ListChangedFilesForJob, release);
    const headers = { 'x-api-key': `${USER.username}:${USER.password}` };
    return send('GET', `${address?.path}?SubmittedJobInfoId=${jobId}`, undefined, headers);
  },
  problem: ({ ask }) => ask(PARTS, { SubmittedJobInfoId: 4_040_404 }),
  validates: async ({ ask, send, code }) => [
    await ask(PARTS, { SubmittedJobInfoId: 0 }),
    await send('GET', `FileTransfer/ListChangedFilesForJob?SubmittedJobInfoId=0&SessionCode=${code}`),
  ],
};

/** What is different in each answer: ids, codes, keys and times. */
const comparable = (answer: unknown) =>
  JSON.stringify(answer)
    .replaceAll(/\d+/g, 'N')
    .replaceAll(/-----[^-]+-----.*?-----END/g, (text) => text.slice(0, 30))
    .replaceAll(/(ssh-rsa|ssh-edN|ecdsa-shaN-nistpN) [\w+/=N ]+/g, '$1')
    .replaceAll(/N-[\da-fN-]+-N/g, 'TRACE');

describe('what the simulated cluster answers changes with', () => {
  const directory = directoryOfFile();
  let sandbox: Sandbox;
  let code = '';
  let count = 0;

  beforeAll(async () => {
    sandbox = await Sandbox.start({
      directory,
      users: [USER],
      habits: { serverHostname: '127.0.0.1:2222', maxKeys: 1 },
    });
    sandbox.setHabits({ keyFormat: 'ec-pem' });
    const body = JSON.stringify({ Credentials: { Username: USER.username, Password: USER.password } });
    code = JSON.parse(await send('POST', 'UserAndLimitationManagement/AuthenticateUserPassword', body)) as string;
  });

  afterAll(() => sandbox.close());

  async function send(method: string, path: string, body?: string, headers = {}): Promise<string> {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const all = { ...type, ...headers, 'accept-language': 'en' };
    const response = await fetch(`${sandbox.restUrl}/${path}`, {
      method,
      headers: all,
      ...(body !== undefined && { body }),
    });
    return response.status === 200 ? await response.text() : `${response.status}: ${await response.text()}`;
  }

  async function answerOf(values: Pick<Place, 'release' | 'before' | 'now'>, ask: Ask): Promise<string> {
    const { release } = values;
    sandbox.setHabits({ release, keyFormat: ask === OBSERVED_BY.keyFormat ? 'usual' : 'ec-pem' });
    count += 1;
    const [jobId, task] = [String(100 + count), String(500 + count)];
    const submitted = await sandbox.submitJob({
      jobId,
      tasks: [{ taskId: task, specificationId: `9${task}`, subdirectory: 'sub' }],
    });
    await writeFile(submitted.tasks[0]?.files.stdout ?? '', `${'x'.repeat(1023)}ž\n`);
    const askOf: Place['ask'] = (operation, members = {}, bytes = 0) => {
      const ofJob = operation === 'ListJobsForCurrentUser' ? {} : { SubmittedJobInfoId: Number(jobId) };
      const given = { ...ofJob, ...members, SessionCode: code };
      const [address] = valueAt(ADDRESSES[operation], release);
      if (address?.verb !== 'GET') return send('POST', address?.path ?? '', JSON.stringify(given).padEnd(bytes));
      const query = Object.entries(given).map(([name, value]) => [name, String(value)]);
      return send('GET', `${address.path}?${new URLSearchParams(Object.fromEntries(query))}`);
    };
    return comparable(await ask({ ...values, code, jobId, task, ask: askOf, send }));
  }

  async function checkEachChange<Value>(row: Row<Value>, ask: Ask): Promise<void> {
    const from = row.from as Record<string, Value>;
    for (const release of RELEASE_NAMES.slice(1).filter((name) => name in from)) {
      const now = valueAt(row, release);
      const before = valueAt(row, RELEASE_NAMES[RELEASE_NAMES.indexOf(release) - 1] ?? '2.0');
      const answer = await answerOf({ release, before, now }, ask);
      from[release] = before;
      const otherwise = await answerOf({ release, before, now }, ask).finally(() => {
        from[release] = now;
      });
      expect(answer, `${JSON.stringify(now)} from ${release} on`).not.toBe(otherwise);
    }
  }

  it.each(Object.entries(OBSERVED_BY))('%s', async (name, ask) => {
    await checkEachChange<unknown>(ROWS[name as keyof typeof OBSERVED_BY], ask);
  });

  it.each(Object.entries(ADDRESSES))('the address of %s', async (operation, row) => {
    await checkEachChange(row, ({ send }) =>
      Promise.all(
        addressesOf(operation as Operation).map(({ verb, path }) =>
          send(verb, path, verb === 'GET' ? undefined : '{}'),
        ),
      ),
    );
  });
});

test('the least of calls at a time is the default of the configuration', () => {
  const { concurrency } = v.parse(serviceSection('/'), { protocol: 'rest', baseUrl: 'http://127.0.0.1:1' });
  expect(concurrency).toBe(Math.min(...valuesOf(ROWS.callsAtATime)));
});

describe('the agent recognizes, in the words of each release,', () => {
  /** With what the words name, and the code that the error has. Of a sign-in: the code of that. */
  const CONCLUDED: Readonly<Record<FailureKind, readonly [code: string, ...subjects: string[]]>> = {
    sessionUnknown: ['session-lost', '11111111'],
    sessionExpired: ['session-lost', '11111111', '2026-11-28'],
    wrongSecret: ['sign-in-refused', 'alice'],
    unknownUser: ['sign-in-refused|http-status', 'alice'],
    invalid: ['fault', 'Path contains some illegal characters\n'],
    tooLongName: ['fault', '50'],
    nullList: ['fault'],
    noSuchJob: ['fault', '7'],
    noSuchJobInfo: ['fault', '7'],
    foreignJob: ['fault', 'alice', '7'],
    noSuchFile: ['fault', '5/5/x', "No such file. Path: '/home/u/5/5/x'."],
    unreadableFile: ['fault', '5/5/x', 'Permission denied'],
    directory: ['fault', '5/5/x', 'Failure'],
    emptyPath: ['fault|unavailable'],
    unexpected: ['fault'],
    external: ['fault', 'The limit was reached.'],
  };
  /** What is in the place of the file, from the release on that reports it. */
  const IN_PLACE: Partial<Record<FailureKind, readonly [what: string, from: ReleaseName]>> = {
    noSuchFile: ['nothing', '3.1'],
    unreadableFile: ['unreadable', '5.0'],
    directory: ['a directory', '5.0'],
  };
  const { secrets } = remoteParts([]);

  it.each(Object.keys(FAILURES) as FailureKind[])('%s', (kind) => {
    const [code, ...subjects] = CONCLUDED[kind];
    for (const name of RELEASE_NAMES) {
      const { status, body } = answerTo(new RestFailure(kind, ...subjects), releaseOf(name));
      const text = JSON.stringify(body);
      const answer = { status, retryAfterMs: undefined };
      const isSignIn = kind === 'wrongSecret' || kind === 'unknownUser';
      const refused = {
        ...answer,
        operation: 'DownloadFileFromCluster',
        problem: problemOf(text),
        urlKey: '',
      } as const;
      const error = isSignIn
        ? signInRefusal(answer, text, { url: '', secrets, secretPlace: '' })
        : refusalOf(refused, { secrets, isSessionFault: () => false });
      expect(code.split('|'), `${name}: ${error.message}`).toContain(error.code);
      const [what, from] = IN_PLACE[kind] ?? [];
      const isReported = from !== undefined && RELEASE_NAMES.indexOf(name) >= RELEASE_NAMES.indexOf(from);
      expect(error.inPlace, name).toBe(isReported ? what : undefined);
    }
  });
});

test('each row names a section of the document', () => {
  const sections = readFileSync(new URL('../../../docs/dev/rest.md', import.meta.url), 'utf8');
  const rows = [...Object.values(ROWS), ...Object.values(ADDRESSES), ...Object.values(FAILURES)];
  for (const { section } of rows) expect(sections).toContain(`\n### ${section} `);
});
