import { describe, expect, test } from 'vitest';
import type { PartRequest } from '../../../src/agent/ports/server.ts';
import type { JobtailError } from '../../../src/errors.ts';
import { LIVE_FILE_NAMES } from '../../../src/job.ts';
import { Secrets } from '../../../src/redact.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';
import { GivenSession, JOB, jobId, SESSION_CODE, spillTo, TASK, taskId } from '../../support/wire-remote.ts';
import { type Answer, type Asked, createRest, startRestServer, type TestRestOptions } from '../../support/wire-rest.ts';
import { closedAtEnd } from '../../support/wire-server.ts';

const signal = new AbortController().signal;

async function place(answer: (asked: Asked) => Answer, options?: TestRestOptions) {
  const server = closedAtEnd(await startRestServer(answer));
  const made = closedAtEnd(createRest(server.url, options));
  return { ...made, server, asked: () => server.asked.map(({ what }) => what) };
}

const four = (task = TASK): PartRequest[] => LIVE_FILE_NAMES.map((file) => ({ taskId: task, file, offset: 123_456 }));

async function download({ remote }: Awaited<ReturnType<typeof place>>, path: string): Promise<string> {
  const pieces: Buffer[] = [];
  await remote.downloadFile(JOB, path, (bytes) => void pieces.push(Buffer.from(bytes)), signal);
  return String(Buffer.concat(pieces));
}

describe('parts', () => {
  test('come with their texts, whatever the order and case of what is said', async () => {
    const made = await place(({ body }) => {
      // 64 bits, exact.
      expect(body).toContain('"SubmittedJobInfoId":9223372036854775807,');
      return {
        status: 200,
        body: [
          { Content: 'chybí\n\0', RelativePath: 'out.txt', Offset: 3, FileType: 3, SubmittedTaskInfoId: 9001 },
          null,
          { submittedTaskInfoId: 9001, fileType: 2, offset: 0, content: null },
          { Content: 'of nobody', Offset: 3, FileType: 3, SubmittedTaskInfoId: 7 },
        ],
      };
    });
    const wanted: PartRequest[] = [
      { taskId: TASK, file: 'stdout', offset: 3 },
      { taskId: TASK, file: 'stderr', offset: 9 },
    ];
    for (const [offset, file] of [[5, 'log'] as const, [6, 'progress'] as const])
      wanted.push({ taskId: TASK, file, offset });
    const { parts, refused } = await made.remote.readParts(jobId('9223372036854775807'), wanted, signal);
    const texts = await Promise.all(parts.map(async ({ content }) => String(await content.read(0, content.length))));
    expect(parts.map(({ file, offset, relativePath }) => [file, offset, relativePath])).toEqual([
      ['stdout', 3, 'out.txt'],
      ['stderr', 9, null],
    ]);
    expect([texts, refused]).toEqual([['chybí\n\0', ''], 1]);
    for (const { content } of parts) await content.release();
    expect(made.server.asked[0]).toMatchObject({
      what: 'POST FileTransfer/DownloadPartsOfJobFilesFromCluster',
      members: {
        TaskFileOffsets: [
          { SubmittedTaskInfoId: 9001, FileType: 3, Offset: 3 },
          { SubmittedTaskInfoId: 9001, FileType: 2, Offset: 9 },
          { SubmittedTaskInfoId: 9001, FileType: 0, Offset: 5 },
          { SubmittedTaskInfoId: 9001, FileType: 1, Offset: 6 },
        ],
        SessionCode: SESSION_CODE,
      },
      headers: { 'content-type': 'application/json', 'accept-language': 'en' },
    });
  });

  test('are asked for in as few requests as every release takes, in their order', async () => {
    const made = await place(() => ({ status: 200, body: [] }));
    const tasks = [1, 22, 333, 4444, 55555, 2n ** 63n - 1n].map((id) => taskId(String(id)));
    await made.remote.readParts(jobId('9223372036854775807'), tasks.flatMap(four), signal);
    await made.remote.readParts(JOB, [{ taskId: TASK, file: 'log', offset: 0 }], signal);
    const sizes = made.server.asked.map(({ bytes }) => bytes);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(452);
    const asked = made.server.asked.map(({ body }) =>
      [...body.matchAll(/InfoId":(\d+),"FileType/g)].map(([, id]) => id),
    );
    expect(asked.flat()).toEqual([...tasks.flatMap((id) => [id, id, id, id]), TASK]);
    expect(Math.max(...asked.map((ids) => ids.length))).toBeGreaterThan(4);
  });

  test.each<[string, Answer]>([
    ['413', { status: 413 }],
    ['400', { status: 400, body: { title: 'Request body too large', status: 400 } }],
  ])('too long for the server (%s) are requested in halves, for ten minutes', async (_, refusal) => {
    let now = 0;
    const made = await place(({ bytes }) => (bytes > 300 ? refusal : { status: 200, body: [] }), { now: () => now });
    const usual = made.remote.divide(JOB, four());
    await made.remote.readParts(JOB, four(), signal);
    expect(made.session.lostGrants).toEqual([]);
    const before = made.server.asked.length;
    await made.remote.readParts(JOB, four(), signal);
    expect(made.server.asked.slice(before).every(({ bytes }) => bytes <= 300)).toBe(true);
    now += 9 * 60_000;
    expect(made.remote.divide(JOB, four()).length).toBeGreaterThan(usual.length);
    now += 60_000;
    expect(made.remote.divide(JOB, four())).toEqual(usual);
    const restarted = closedAtEnd(createRest(made.server.url, { kept: made.kept }));
    expect(restarted.remote.divide(JOB, four())).toEqual(usual);
  });

  test.each([
    ['a longer code', { kind: 'session', code: 'x'.repeat(100) }, 452],
    ['a token', { kind: 'bearer', token: 'x'.repeat(100) }, 452 - '"SessionCode":"",'.length],
  ] as const)('are divided by the length that requests have with %s', async (_, grant, longest) => {
    const made = await place(() => ({ status: 200, body: [] }), { session: new GivenSession(grant) });
    const wanted = [TASK, taskId('9002')].flatMap(four);
    // How a grant is shown is known from the first call on.
    for (let times = 0; times < 2; times += 1) await made.remote.readParts(JOB, wanted, signal);
    const sizes = made.server.asked.slice(-made.remote.divide(JOB, wanted).length).map(({ bytes }) => bytes);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(longest);
    // No more of them than needed: another file would not have had room.
    expect(Math.max(...sizes)).toBeGreaterThan(longest - 70);
  });

  test('of one file that are too long make no other request shorter', async () => {
    const made = await place(() => ({ status: 413 }));
    const usual = made.remote.divide(JOB, four());
    await expect(made.remote.readParts(JOB, four().slice(0, 1), signal)).rejects.toMatchObject({
      code: 'request-too-long',
    });
    expect(made.remote.divide(JOB, four())).toEqual(usual);
  });

  test('of which a later request fails are given back', async () => {
    let calls = 0;
    const entry = { Content: 'x'.repeat(300_000), Offset: 123_456, FileType: 3, SubmittedTaskInfoId: 9001 };
    const spill = spillTo(temporaryDirectory(), 1000);
    const made = await place(() => (calls++ === 0 ? { status: 200, body: [entry] } : { status: 500 }), { spill });
    await expect(made.remote.readParts(JOB, [...four(), ...four(taskId('9002'))], signal)).rejects.toMatchObject({
      code: 'http-status',
    });
    expect(made.server.asked.length).toBe(2);
    expect(openFilesIn(spill.directory)).toBe(0);
  });

  test('of which an earlier request had enough text cost no later one', async () => {
    const entry = { Content: 'x'.repeat(2_000_000), Offset: 0, FileType: 3, SubmittedTaskInfoId: 9001 };
    const made = await place(({ body }) => ({ status: 200, body: body.includes('9001') ? [entry] : [] }));
    const wanted = ['9001', '9002'].flatMap((id) => four(taskId(id)));
    const enough = wanted.map((request) => ({ ...request, offset: 0, enoughBytes: 100 }));
    const { parts, beginning } = await made.remote.readParts(JOB, enough, signal);
    expect(made.server.asked.length).toBe(1);
    expect(beginning?.length).toBeGreaterThan(99);
    expect(parts).toEqual([]);
    await beginning?.release();
  });
});

describe('where an operation is', () => {
  const isEarly = ({ what }: Asked) => what.startsWith('POST ') && !/Request|Close/.test(what);
  const early = (asked: Asked): Answer => (isEarly(asked) ? { status: 200, body: [] } : { status: 405 });
  const late = (asked: Asked): Answer => (asked.what.startsWith('GET') ? { status: 200, body: [] } : { status: 404 });
  /** From V6.2 on: 500 without a body. */
  const latest = (asked: Asked): Answer => (asked.what.startsWith('GET') ? late(asked) : { status: 500 });

  test.each([
    ['404', late],
    ['500 without a body', latest],
  ])('is found out anew when it stops being true, which is told, and kept until then: %s', async (_, upgraded) => {
    let release = early;
    const made = await place((asked) => release(asked));
    const next = closedAtEnd(createRest(made.server.url, { kept: made.kept }));
    for (const { remote } of [made, made, next]) await remote.listChangedFiles(JOB, signal);
    expect(made.asked().map((what) => what.split(' ')[0])).toEqual(['GET', 'POST', 'POST', 'POST']);
    expect(made.changes).toEqual([]);
    release = upgraded;
    await made.remote.listChangedFiles(JOB, signal);
    expect(made.changes).toEqual([expect.stringMatching(/^ListChangedFilesForJob: GET .*, and no longer POST /)]);
    await made.remote.listChangedFiles(JOB, signal);
    expect(
      made
        .asked()
        .slice(-3)
        .map((what) => what.split(' ')[0]),
    ).toEqual(['POST', 'GET', 'GET']);
  });

  test('is not concluded from what the service says of a job', async () => {
    const made = await place(() => ({ status: 404, body: { title: 'Validation Problem', detail: 'No such job' } }));
    await expect(made.remote.listChangedFiles(JOB, signal)).rejects.toMatchObject({ code: 'fault' });
    expect([made.asked().length, made.kept.size]).toEqual([1, 0]);
  });

  test('is told if it is nowhere', async () => {
    const made = await place(() => ({ status: 404 }));
    const error = await made.remote.listChangedFiles(JOB, signal).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'http-status',
      hint: expect.stringContaining('service.baseUrl and service.path'),
    });
  });
});

describe('a file that is refused', () => {
  const PATH = (words: string) => `Requested path '5/5/x' was not found. Exception message: '${words}'.`;
  test.each([
    ['any', { title: 'Invalid Request', detail: PATH('Client not connected') }, undefined],
    ['a hostile name', { detail: `Requested path 'x Exception message: 'Failure'.' was not found.` }, undefined],
  ])('%s: %j is %s', async (_, body, inPlace) => {
    const made = await place(() => ({ status: 400, body }));
    const error = await made.remote.downloadFile(JOB, '/5/x', () => {}, signal).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'fault' });
    expect((error as JobtailError).inPlace).toBe(inPlace);
  });

  test('by a path of the wrong form is what the right form shows', async () => {
    let calls = 0;
    const made = await place(() => ({
      status: 400,
      body: PATH(++calls === 1 ? "No such file. Path: '/x'." : 'Permission denied'),
    }));
    const error = await made.remote.downloadFile(JOB, '/5/x', () => {}, signal).catch((thrown: unknown) => thrown);
    expect([calls, (error as JobtailError).inPlace]).toEqual([2, 'unreadable']);
  });
});

/** What releases up to V3.1 answer to a request that is too long for them. */
const STATUS_PAGE = `Status Code: 400; Bad Request${' '.repeat(500)}`;

describe('a listing', () => {
  test('whose request is too long for V2.0 is refused for its length, and not for the address', async () => {
    const made = await place(() => ({ status: 400, page: STATUS_PAGE }));
    await expect(made.remote.listChangedFiles(JOB, signal)).rejects.toMatchObject({
      code: 'request-too-long',
      hint: expect.stringContaining('five digits'),
    });
  });

  test('is of names, or of names with dates, or nothing', async () => {
    const bodies: unknown[] = [
      ['1///a b', null, ''],
      [
        { FileName: '/1/a', LastModifiedDate: '2024-05-01T12:00:00' },
        { fileName: '/1/b' },
        { LastModifiedDate: 'x' },
        null,
        // What is no date says nothing.
        ...['', 'x'.repeat(65)].map((date, at) => ({ FileName: `/2/${at}`, LastModifiedDate: date })),
        { FileName: '/2/2', LastModifiedDate: 'x'.repeat(64) },
      ],
      null,
    ];
    const made = await place(() => ({ status: 200, body: bodies.shift() }));
    expect([...(await made.remote.listChangedFiles(JOB, signal))]).toEqual(['1///a b', '']);
    const dated = await made.remote.listChangedFiles(JOB, signal);
    expect([...dated]).toEqual(['/1/a', '/1/b', '/2/0', '/2/1', '/2/2']);
    expect([...(dated.stamps ?? [])]).toEqual([
      ['/1/a', '2024-05-01T12:00:00'],
      ['/2/2', 'x'.repeat(64)],
    ]);
    expect(await made.remote.listChangedFiles(JOB, signal)).toEqual([]);
  });
});

describe('a whole file', () => {
  test('with U+FFFD in it is not taken for the file where parts of the job are refused', async () => {
    const contents = { plain: 'žluť', decoded: 'ab\ufffd\ufffdc', edge: `${'x'.repeat(256 * 1024 - 2)}\ufffd` };
    let partsAre: Answer = { status: 500, body: { title: 'External Problem', status: 500, detail: 'not supported' } };
    const made = await place(({ what, body }) => {
      if (what.endsWith('DownloadPartsOfJobFilesFromCluster')) return partsAre;
      const [name = ''] = /plain|decoded|edge/.exec(body ?? '') ?? [];
      return { status: 200, body: Buffer.from(contents[name as keyof typeof contents]).toString('base64') };
    });
    // Before parts were asked for, nothing says so.
    expect(await download(made, '/decoded')).toBe(contents.decoded);
    // Nor does the response to ids without a file, and for a job that is not submitted.
    const [refusal, empty] = [partsAre, { status: 200, body: [] } as Answer];
    partsAre = empty;
    await made.remote.readParts(JOB, four(), signal);
    partsAre = refusal;
    const hint = expect.stringMatching(/job id.*FirecREST.*only a direct transfer/);
    await expect(made.remote.readParts(JOB, four(), signal)).rejects.toMatchObject({ code: 'fault', hint });
    expect(await download(made, '/plain')).toBe(contents.plain);
    for (const name of ['/decoded', '/edge'])
      await expect(download(made, name)).rejects.toMatchObject({
        code: 'unexpected-answer',
        hint: expect.stringContaining('FirecREST'),
      });
    partsAre = empty;
    await made.remote.readParts(JOB, four(), signal);
    await expect(download(made, '/edge')).rejects.toMatchObject({ code: 'unexpected-answer' });
    partsAre = { status: 200, body: [{ SubmittedTaskInfoId: TASK, FileType: 3, Offset: 123_456, Content: '' }] };
    await made.remote.readParts(JOB, four(), signal);
    expect(await download(made, '/edge'), 'parts come by now').toBe(contents.edge);
    // One live file that is refused shows nothing of the cluster of the others.
    partsAre = { status: 400, body: { detail: 'Permission denied' } };
    await expect(made.remote.readParts(JOB, four(), signal)).rejects.toMatchObject({ code: 'fault' });
    expect(await download(made, '/edge')).toBe(contents.edge);
  });

  const file =
    (wanted: string) =>
    ({ members }: Asked) =>
      members['RelativeFilePath'] === wanted
        ? { status: 200, body: Buffer.from(wanted).toString('base64') }
        : { status: 500, body: { title: 'File not found' } };

  test.each([
    ['V2.0', '77///a', '/77///a'],
    ['V4.1', '/77/a', '/77/a'],
    ['V4.0', '/77/a', '/501/77/a'],
  ])('is asked for by the path that the release wants: %s', async (_, listed, wanted) => {
    const made = await place(file(wanted));
    expect(await download(made, listed)).toBe(wanted);
    const before = made.server.asked.length;
    expect(await download(made, listed)).toBe(wanted);
    expect(made.server.asked.length).toBe(before + 1);
  });

  test('whose path is wanted otherwise from now on is found, which is told', async () => {
    let wanted = '/501/77/a';
    const made = await place((asked) => file(wanted)(asked));
    await download(made, '/77/a');
    wanted = '/77/a';
    expect(await download(made, '/77/a')).toBe('/77/a');
    expect(made.changes).toEqual(['the path of a file: listed, and no longer below the job']);
  });

  test('that is not there is asked for twice, and fails as the service says first', async () => {
    const made = await place(() => ({ status: 400, body: { title: 'x', detail: `call ${made.server.asked.length}` } }));
    await expect(download(made, '/77/a')).rejects.toMatchObject({
      code: 'fault',
      message: expect.stringContaining('call 1'),
    });
    expect(made.server.asked.length).toBe(2);
  });

  test('with a name that no release accepts is not asked for', async () => {
    const made = await place(() => ({ status: 200, body: '' }));
    const long = `/1/${'x'.repeat(300)}`;
    expect(made.remote.reasonAgainst(long)).toContain('only a direct transfer');
    await expect(download(made, long)).rejects.toMatchObject({ code: 'usage' });
    expect([made.server.asked, made.remote.reasonAgainst('/1/A b_-.~c')]).toEqual([[], undefined]);
  });

  const ODD = ['/1/čau', '/1/a,b', `/1/a+b${'x'.repeat(60)}`];

  test('with any character comes where the release hands it out', async () => {
    const made = await place(({ members }) => ({
      ...{ status: 200, body: Buffer.from(String(members['RelativeFilePath'])).toString('base64') },
    }));
    for (const name of ODD) expect(await download(made, name)).toBe(name);
  });

  const ILLEGAL = 'Path contains some illegal characters\n';
  const errors = { RelativeFilePath: ['The field RelativeFilePath must be a string with a maximum length of 50.'] };
  const MAX_50 = { title: 'One or more validation errors', errors };
  const [LONG, LONGER] = [60, 200].map((length) => `/1/${'x'.repeat(length)}`) as [string, string];
  test.each<[reason: string, what: string, name: string, refusal: Answer]>([
    ...ODD.map((name) => ['character', 'its words', name, { status: 404, body: { detail: ILLEGAL } }] as never),
    ['length', 'its words', LONG, { status: 400, body: 'RelativeFilePath is longer than 50 characters' }],
    ['length', 'words about characters', LONG, { status: 400, body: ILLEGAL }],
    ['length', 'its errors', LONG.replace('x', 'č'), { status: 400, body: MAX_50 }],
    ['length', 'the page of an early release', LONGER, { status: 400, page: STATUS_PAGE }],
    ['length', 'its status', LONGER, { status: 413 }],
  ])('that is refused for a %s, which %s shows, is asked for once a day: %s', async (reason, _, name, refusal) => {
    let now = 0;
    const made = await place(() => refusal, { now: () => now });
    for (let times = 0; times < 2; times++) await expect(download(made, name)).rejects.toMatchObject({ code: 'usage' });
    expect(made.server.asked.length).toBe(1);
    const isOdd = reason === 'character';
    const why = isOdd ? 'the character .* in its name' : 'more than 50 characters';
    expect(made.remote.reasonAgainst(name)).toMatch(new RegExp(`${why}; only a direct transfer`));
    // Nothing is concluded for the others.
    expect(made.remote.reasonAgainst(isOdd ? LONG : `/1/${'č'.repeat(40)}`)).toBeUndefined();
    expect(made.remote.reasonAgainst('/1/a&b') === undefined).toBe(!isOdd);
    now = 25 * 60 * 60_000;
    expect(made.remote.reasonAgainst(name)).toBeUndefined();
  });

  test('of 5,242,880 characters may be cut, and is not taken, where parts of the job are refused', async () => {
    const max = 5_242_880;
    let content = '';
    const made = await place(({ what }) =>
      what.endsWith('DownloadPartsOfJobFilesFromCluster')
        ? { status: 500, body: { title: 'External Problem', status: 500, detail: 'not supported' } }
        : { status: 200, body: Buffer.from(content).toString('base64') },
    );
    content = 'x'.repeat(max);
    expect((await download(made, '/a')).length).toBe(max);
    await expect(made.remote.readParts(JOB, four(), signal)).rejects.toMatchObject({ code: 'fault' });
    // By its characters, and by its bytes.
    for (const cut of ['ž'.repeat(max), 'ž'.repeat(max / 2)]) {
      content = cut;
      await expect(download(made, '/a')).rejects.toMatchObject({
        code: 'unexpected-answer',
        message: expect.stringContaining('5,242,880 characters, and may be cut'),
      });
    }
    for (const whole of ['x'.repeat(max - 1), 'x'.repeat(max + 1)]) {
      content = whole;
      expect((await download(made, '/a')).length).toBe(whole.length);
    }
  });

  test('with a long name that is not there is not refused for its length', async () => {
    const made = await place(() => ({
      status: 400,
      body: { title: 'Invalid Request', detail: 'File was not found.' },
    }));
    const long = `/1/${'x'.repeat(60)}`;
    await expect(download(made, long)).rejects.toMatchObject({ code: 'fault' });
    expect(made.remote.reasonAgainst(long)).toBeUndefined();
  });
});

describe('a key', () => {
  const METHOD = {
    ServerHostname: 'login.example',
    SharedBasepath: '/scratch/501',
    Protocol: 4,
    Port: 2222,
    ProxyConnection: null,
    Credentials: {
      Username: 'a',
      PrivateKey: 'secret key',
      PublicKey: 'ssh-ed25519 A',
      Passphrase: 'the passphrase',
      CipherType: 3,
      PrivateKeyCertificate: 'c',
      Password: 'the password',
    },
  };

  test('is told with all that is needed to use it, or is none', async () => {
    const secrets = new Secrets();
    const bodies: unknown[] = [METHOD, null];
    const made = await place(() => ({ status: 200, body: bodies.shift() }), { secrets });
    const method = await made.remote.getTransferMethod(JOB, signal);
    expect(await made.remote.getTransferMethod(JOB, signal)).toBeNull();
    expect(secrets.hide('secret key, the passphrase, the password')).toBe('***, ***, ***');
    expect(method).toMatchObject({
      ...{ serverHostname: 'login.example', sharedBasepath: '/scratch/501', protocol: 'SftpScp', port: 2222 },
      credentials: {
        username: 'a',
        privateKey: 'secret key',
        publicKey: 'ssh-ed25519 A',
        passphrase: 'the passphrase',
        certificate: 'c',
      },
    });
  });

  test.each([
    ['EndFileTransfer', 'UsedTransferMethod', METHOD],
    ['CloseFileTransfer', 'PublicKey', METHOD.Credentials.PublicKey],
  ])('is ended by %s', async (name, member, expected) => {
    const names = name === 'EndFileTransfer' ? ['GetFileTransferMethod', name] : ['RequestFileTransfer', name];
    const made = await place(({ what }) =>
      names.some((known) => what.endsWith(known)) ? { status: 200, body: METHOD } : { status: 404 },
    );
    const method = await made.remote.getTransferMethod(JOB, signal);
    if (method === null) throw new Error('no method');
    await made.remote.endTransfer(JOB, method, signal);
    const latest = ['RequestFileTransfer', 'GetFileTransferMethod', 'CloseFileTransfer', 'EndFileTransfer'];
    const asked = name === 'EndFileTransfer' ? latest : [latest[0], name];
    expect(made.asked()).toEqual(asked.map((one) => `POST FileTransfer/${one}`));
    expect(made.server.asked.at(-1)?.members).toEqual({
      SubmittedJobInfoId: 501,
      [member]: expected,
      SessionCode: SESSION_CODE,
    });
    // After a restart, only what may be kept is left.
    const { given: _, ...left } = method;
    await made.remote.endTransfer(
      JOB,
      { ...left, credentials: { username: 'a', privateKey: null, publicKey: 'ssh-ed25519 A' } },
      signal,
    );
    const kept = {
      ...{ ServerHostname: 'login.example', SharedBasepath: '/scratch/501', Protocol: 2 },
      Credentials: { Username: 'a', PrivateKey: '', PublicKey: 'ssh-ed25519 A' },
    };
    expect(made.server.asked.at(-1)?.members).toEqual({
      SubmittedJobInfoId: 501,
      ...(name === 'EndFileTransfer' ? { UsedTransferMethod: kept } : { PublicKey: 'ssh-ed25519 A' }),
      SessionCode: SESSION_CODE,
    });
    const nothing = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
    await made.remote.endTransfer(JOB, nothing, signal);
    expect(made.server.asked.at(-1)?.members).toEqual({
      SubmittedJobInfoId: 501,
      ...(name === 'EndFileTransfer'
        ? { UsedTransferMethod: { ServerHostname: '', SharedBasepath: '' } }
        : { PublicKey: null }),
      SessionCode: SESSION_CODE,
    });
  });

  test.each([
    [{ Protocol: 1 }, { protocol: 'NetworkShare' }],
    [{ Protocol: 2 }, { protocol: 'SftpScp' }],
    [{ Protocol: 8 }, 'malformed'],
    [{ Protocol: null }, { protocol: null }],
    [{ Port: 65_535 }, { port: 65_535 }],
    [{ Port: 0 }, { protocol: 'SftpScp' }],
    [{ Port: 65_536 }, 'malformed'],
    [{ Port: -1 }, 'malformed'],
    [{ Credentials: null }, { credentials: null }],
    [
      { Credentials: { Username: ' a ', PrivateKey: 'k\n', Passphrase: '', PrivateKeyCertificate: '' } },
      { credentials: { username: ' a ', privateKey: 'k\n', publicKey: null } },
    ],
  ])('with %j is %j', async (members, expected) => {
    const made = await place(() => ({ status: 200, body: { Protocol: 4, ...members } }));
    const found = made.remote.getTransferMethod(JOB, signal);
    if (typeof expected === 'string') await expect(found).rejects.toMatchObject({ code: expected });
    else {
      const { given: _, ...method } = (await found) ?? {};
      const nothing = { serverHostname: null, sharedBasepath: null, protocol: 'SftpScp', credentials: null };
      expect(method).toEqual({ ...nothing, ...expected });
    }
  });
});

describe('jobs', () => {
  test('have a word for each state, and its number where it is not known', async () => {
    const states = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, null];
    const made = await place(() => ({ status: 200, body: states.map((State, at) => ({ Id: at + 1, State })) }));
    expect((await made.jobs.listJobs(signal)).map(({ state }) => state)).toEqual([
      ...['Configuring', 'Submitted', 'Queued', 'Running', 'Finished', 'Failed', 'Canceled'],
      ...['WaitingForServiceAccount', 'Deleted', '512', null],
    ]);
  });

  test('are asked for by their earlier names, and nothing is a list without jobs', async () => {
    const made = await place(({ what }) => (what.startsWith('GET') ? { status: 405 } : { status: 204 }));
    await expect(made.jobs.getJob(JOB, signal)).rejects.toMatchObject({ code: 'not-found' });
    expect(await made.jobs.listJobs(signal)).toEqual([]);
    expect(made.asked().filter((what) => what.startsWith('POST'))).toEqual([
      'POST JobManagement/GetCurrentInfoForJob',
      'POST JobManagement/ListJobsForCurrentUser',
    ]);
  });
});
