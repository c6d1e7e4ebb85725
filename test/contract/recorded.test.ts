/** The simulated cluster answers as real servers of five releases did, names and numbers aside. */
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { TaskSpec } from '../../simulator/cluster/specs.ts';
import { Sandbox } from '../../simulator/sandbox.ts';
import { directoryOfFile, temporaryDirectory } from '../support/temp-directory.ts';
import {
  comparable,
  isWhole,
  LATEST,
  linesOf,
  RECORDED,
  type RecordedAnswer,
  type RecordedRelease,
} from './recorded/answers.ts';

const USERS = {
  alice: { username: 'alice', password: 'correct horse', token: 'alices-token' },
  other: { username: 'other', password: 'battery staple', token: 'others-token' },
};
const SIGN_IN = 'UserAndLimitationManagement/AuthenticateUserPassword';

describe.each(RECORDED.map((recorded) => [recorded.version, recorded] as const))(
  'the sandbox as V%s answers',
  (version, recorded) => {
    const answers = linesOf<RecordedAnswer>(`answers-${version}.jsonl`);
    const directory = directoryOfFile();
    let sandbox: Sandbox;
    let codes: { readonly own: string; readonly other: string };

    beforeAll(async () => {
      sandbox = await startRecorded(directory, recorded);
      codes = { own: await signInTo(sandbox, 'alice'), other: await signInTo(sandbox, 'other') };
      // The recorded job had a key before.
      if (version === LATEST.version) await ask(answers.find(({ name }) => name === 'key 1'));
    });

    afterAll(() => sandbox.close());

    function ask(one?: RecordedAnswer) {
      const withCode = (text?: string) => text?.replace('…', codes.own).replace('OTHER', codes.other);
      return send(sandbox, `${one?.method}`, `${withCode(one?.path)}`, withCode(one?.asked));
    }

    it.each(answers.map((answer) => [answer.name, answer] as const))('%s', async (_, answer) => {
      const expected = comparable(answer);
      const found = comparable(await ask(answer));
      const body = isWhole(answer) ? found.body : found.body.slice(0, expected.body.length);
      expect({ ...found, body }).toEqual(expected);
    });

    it('was asked all of it', () => {
      expect(answers.length).toBeGreaterThanOrEqual(53);
    });
  },
);

type Answered = Pick<RecordedAnswer, 'status' | 'type' | 'body'>;

async function send(sandbox: Sandbox, method: string, path: string, body?: string): Promise<Answered> {
  const response = await fetch(`${sandbox.restUrl}${path}`, {
    method,
    headers: { 'accept-language': 'en', ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body }),
  });
  return { status: response.status, type: response.headers.get('content-type'), body: await response.text() };
}

async function signInTo(sandbox: Sandbox, user: keyof typeof USERS): Promise<string> {
  const { username: Username, password: Password } = USERS[user];
  const { body } = await send(sandbox, 'POST', `/${SIGN_IN}`, JSON.stringify({ Credentials: { Username, Password } }));
  return JSON.parse(body) as string;
}

/** A cluster as that of the recording was: one job with its files, perhaps one that is not submitted. */
async function startRecorded(directory: string, recorded: RecordedRelease): Promise<Sandbox> {
  const { release, jobId, taskId, specificationId, heldJobId } = recorded;
  const users = [USERS.alice, USERS.other];
  const habits = { release, serverHostname: '127.0.0.1:2222', rsaBits: 1_024 };
  // A time that happens to be a whole second has another form.
  const clock = () => Date.now() - (Date.now() % 10) + 1;
  const sandbox = await Sandbox.start({ directory, users, habits, clock });
  const task: TaskSpec = {
    ...{ taskId, specificationId },
    liveFiles: { stdout: 'stdout', stderr: 'stderr', log: 'log.txt', progress: 'progress.txt' },
  };
  const job = await sandbox.submitJob({ jobId, tasks: [task] });
  for (const path of Object.values(job.tasks[0]?.files ?? {})) await writeFile(path, `${path}\n`);
  if (heldJobId !== undefined) await sandbox.submitJob({ jobId: heldJobId, held: true, tasks: [{}] });
  // V2.0.0 answered while the job ran, V3.1.0 when it had ended.
  if (release !== '2.0') await job.end('Finished');
  return sandbox;
}

type Listed = readonly { readonly FileName: string }[];

describe('the examples of V6.3.2', () => {
  const lines = linesOf<{ readonly name: string; readonly answer: unknown }>('examples-6.3.2.jsonl');
  const exampleOf = (wanted: string) => lines.find(({ name }) => name === wanted)?.answer;
  /** Under these names, files, links and a pipe were made on the cluster. */
  const ODD = (exampleOf('listing of odd names') as Listed).map(({ FileName }) => FileName.replace('/76/', ''));

  it('are what the simulated cluster answers with', async () => {
    const directory = temporaryDirectory();
    const recorded = { ...LATEST, jobId: '76', taskId: '76', specificationId: '76', heldJobId: '1' };
    const sandbox = await startRecorded(directory, recorded);
    onTestFinished(() => sandbox.close());
    const task = sandbox.job('76')?.tasks[0]?.directory ?? '';
    await makeOddFiles(task, ODD);
    const own = await signInTo(sandbox, 'alice');
    const get = async (path: string) =>
      (await send(sandbox, 'GET', `${path}?SessionCode=${own}&SubmittedJobInfoId=76`)).body;
    const post = async (path: string, more: object) =>
      (await send(sandbox, 'POST', path, JSON.stringify({ SubmittedJobInfoId: 76, SessionCode: own, ...more }))).body;

    const listed = JSON.parse(await get('/FileTransfer/ListChangedFilesForJob')) as Listed;
    const recordedNames = ODD.map((name) => `/76/${name}`);
    // These two the recorded job did not have.
    const live = ['/76/log.txt', '/76/progress.txt'];
    expect(listed.map(({ FileName }) => FileName).sort()).toEqual([...recordedNames, ...live].sort());

    const like = (body: string) => comparable({ status: 200, type: 'application/json', body }).body;
    expect(like(await get('/JobManagement/CurrentInfoForJob'))).toBe(like(JSON.stringify(exampleOf('job'))));
    const key = await post('/FileTransfer/RequestFileTransfer', {});
    expect(like(key)).toBe(like(JSON.stringify(exampleOf('key'))));
    const { Credentials } = JSON.parse(key) as { Credentials: { PublicKey: string } };
    const closed = await post('/FileTransfer/CloseFileTransfer', { PublicKey: Credentials.PublicKey });
    expect(JSON.parse(closed)).toBe(exampleOf('key closed'));
  });
});

const NO_UTF8 = Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from('.dat')]);

async function makeOddFiles(directory: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    if (name === 'pipe') execFileSync('mkfifo', [path]);
    else if (name === 'dangling') await symlink('nowhere', path);
    else if (name === 'sub/up') await symlink('..', path);
    else if (name === 'link.txt') await symlink('target.txt', path);
    // Bytes that are no UTF-8 are listed with U+FFFD.
    else if (name.includes('\ufffd')) await writeFile(Buffer.concat([Buffer.from(`${directory}/`), NO_UTF8]), '');
    else await writeFile(path, '');
  }
}
