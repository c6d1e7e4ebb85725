import { appendFile, mkdir, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBytes } from '../../support/decode-bytes.ts';
import { onlyTask } from '../../support/only-task.ts';
import { numRuns } from '../../support/property-runs.ts';
import {
  ALICE,
  BOB,
  call,
  faultText,
  jobAnd,
  NAMESPACE,
  offsets,
  type PartEntry,
  signIn,
  startSandbox,
} from '../support.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const LIST = 'ListChangedFilesForJob';
const FILE = 'DownloadFileFromCluster';

/** A job with one task without a process. */
async function startJob(options: Parameters<typeof startSandbox>[0] = {}) {
  const sandbox = await startSandbox(options);
  const session = await signIn(sandbox);
  const job = await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '123' }] });
  const parts = async (...entries: PartEntry[]) => {
    const { body } = await call(sandbox, PARTS, jobAnd('501', session, offsets(...entries)));
    const start = `<${PARTS}Response xmlns="${NAMESPACE}"><${PARTS}Result>`;
    const end = `</${PARTS}Result></${PARTS}Response>`;
    return body.startsWith(start) ? body.slice(start.length, -end.length) : body;
  };
  const list = async () => {
    const { body } = await call(sandbox, LIST, jobAnd('501', session));
    return [...body.matchAll(/<string>(.*?)<\/string>/gs)].map(([, name]) => name ?? '').sort();
  };
  const fileAnswer = (name: string) =>
    call(sandbox, FILE, jobAnd('501', session, `<relativeFilePath>${name}</relativeFilePath>`));
  const file = async (name: string) => {
    const answer = await fileAnswer(name);
    if (answer.status !== 200) return faultText(answer);
    return answer.body.replace(`<${FILE}Response xmlns="${NAMESPACE}">`, '').replace(`</${FILE}Response>`, '');
  };
  return { sandbox, session, job, task: onlyTask(job), parts, list, file };
}

const entry = (content: string, fileType = 'StandardOutputFile', path = '/stdout.txt', offset = '0') =>
  `<JobFileContentExt>${content}<relativePath>${path}</relativePath><offset>${offset}</offset>` +
  `<fileType>${fileType}</fileType><submittedTaskInfoId>9001</submittedTaskInfoId></JobFileContentExt>`;

describe('DownloadPartsOfJobFilesFromCluster', () => {
  it('writes an entry byte for byte, white space, CR and control references included', async () => {
    const { task, parts } = await startJob();
    await writeFile(task.files.stdout, ' a\tb\r\nc\rd\n <&>"\' \u001b[31m\0\u007f\u0085\ufffe\uffff\ufeff 😀\n\n');
    expect(await parts(['9001', 'StandardOutputFile', 0])).toBe(
      entry(
        '<content> a\tb\r\nc\rd\n &lt;&amp;&gt;"\' &#x1B;[31m&#x0;\u007f\u0085&#xFFFE;&#xFFFF;\ufeff 😀\n\n</content>',
      ),
    );
  });

  it('decodes independent blocks of 1,024 bytes from the offset on', async () => {
    const { task, parts } = await startJob();
    await writeFile(task.files.stdout, `${'a'.repeat(1023)}č`);
    expect(await parts(['9001', 'StandardOutputFile', 0])).toContain(`>${'a'.repeat(1023)}\ufffd\ufffd<`);
    expect(await parts(['9001', 'StandardOutputFile', 1000])).toContain(`>${'a'.repeat(23)}č<`);
    expect(await parts(['9001', 'StandardOutputFile', 1024])).toContain('>\ufffd<');
  });

  it('hands out exactly what decodeBytes says, for any bytes and offset', async () => {
    const { task, parts } = await startJob();
    const bytes = fc.uint8Array({ maxLength: 4000 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(4000), async (content, offset) => {
        await writeFile(task.files.stdout, content);
        const written = await parts(['9001', 'StandardOutputFile', offset]);
        const text = /<content>(.*)<\/content>/s.exec(written)?.[1] ?? '';
        expect(unescapeXml(text)).toBe(decodeBytes(content, offset));
      }),
      numRuns(50),
    );
  });

  it('writes an empty element for an offset at or past the end, and no entry for a file that does not exist', async () => {
    const { task, parts } = await startJob();
    await writeFile(task.files.stdout, 'abc');
    expect(await parts(['9001', 'StandardOutputFile', 3])).toBe(
      entry('<content />', 'StandardOutputFile', '/stdout.txt', '3'),
    );
    expect(await parts(['9001', 'StandardOutputFile', 2 ** 44])).toContain('<content />');
    expect(await parts(['9001', 'LogFile', 0])).not.toContain('JobFileContentExt');
  });

  it('answers in an order of its own, leaves tasks of other jobs out, and serves one file at several offsets', async () => {
    const { sandbox, session, task } = await startJob();
    const job = await sandbox.submitJob({ jobId: '502', tasks: [{ taskId: '1' }, { taskId: '2' }] });
    await writeFile(task.files.stdout, 'of another job');
    for (const { files } of job.tasks) {
      await writeFile(files.stdout, 'out');
      await writeFile(files.log, 'log');
    }
    const asked = offsets(
      ['1', 'StandardOutputFile', 2],
      ['1', 'StandardOutputFile', 1],
      ['9001', 'StandardOutputFile', 0],
      ['1', 'LogFile', 0],
      ['2', 'LogFile', 0],
      ['3', 'LogFile', 0],
    );
    const { body } = await call(sandbox, PARTS, jobAnd('502', session, asked));
    const order = [...body.matchAll(/<content>(.*?)<.*?<submittedTaskInfoId>(.*?)</g)].map((match) => match.slice(1));
    expect(order).toEqual([
      ['log', '2'],
      ['log', '1'],
      ['t', '1'],
      ['ut', '1'],
    ]);
  });

  it('fails as a whole for one file that cannot be read', async () => {
    const { sandbox, session, task } = await startJob();
    await writeFile(task.files.stdout, 'fine');
    await mkdir(task.files.stderr);
    const asked = offsets(['9001', 'StandardOutputFile', 0], ['9001', 'StandardErrorFile', 0]);
    const answer = await call(sandbox, PARTS, jobAnd('501', session, asked));
    expect(answer.status).toBe(500);
    expect(faultText(answer)).toBe('The stderr of task 9001 is no file.');
    await rm(task.files.stderr, { recursive: true });
    await symlink('stderr.txt', task.files.stderr);
    expect(faultText(await call(sandbox, PARTS, jobAnd('501', session, asked)))).toMatch(
      /^Server was unable to process request. ---&gt; ELOOP/,
    );
    const negative = await call(sandbox, PARTS, jobAnd('501', session, offsets(['9001', 'StandardOutputFile', -1])));
    expect(faultText(negative)).toBe('The offset -1 is negative.');
    const far = await call(
      sandbox,
      PARTS,
      jobAnd('501', session, offsets(['9001', 'StandardOutputFile', 2 ** 44 + 1])),
    );
    expect(faultText(far)).toBe('EINVAL: the offset 17592186044417 is no place in a file.');
  });

  it('reads through a link to another task, and through none that leaves the jobs', async () => {
    const { sandbox, task, parts } = await startJob();
    await writeFile(join(task.directory, 'parent'), 'parent');
    await symlink('parent', task.files.stdout);
    expect(await parts(['9001', 'StandardOutputFile', 0])).toBe(entry('<content>parent</content>'));
    await writeFile(join(sandbox.directory, 'secret'), 'secret');
    await symlink('../../../secret', task.files.log);
    expect(await parts(['9001', 'LogFile', 0])).not.toContain('JobFileContentExt');
  });

  it('has the habits of other servers', async () => {
    const { sandbox, task, parts } = await startJob();
    const ask = (offset = 0) => parts(['9001', 'StandardOutputFile', offset]);
    await writeFile(task.files.stdout, '\ufeffč');
    sandbox.setHabits({ offsetEcho: 'nil', relativePath: 'job' });
    expect(await ask()).toContain('<relativePath>/123/stdout.txt</relativePath><offset xsi:nil="true" /><fileType>');
    sandbox.setHabits({ offsetEcho: 'zero', relativePath: 'none' });
    expect(await ask(3)).toContain('<content>č</content><offset>0</offset>');
    sandbox.setHabits({ nullMembers: true, emptyContent: 'none' });
    expect(await ask(5)).toContain('<content xsi:nil="true" /><relativePath xsi:nil="true" /><offset>0</offset>');
    sandbox.setHabits({ nullMembers: false, nilEntries: true });
    expect(await ask(5)).toMatch(/^<JobFileContentExt xsi:nil="true" \/><JobFileContentExt><offset>/);
    sandbox.setHabits({ swallowBom: true, nilEntries: false });
    expect(await ask()).toContain('<content>č</content>');
    sandbox.setHabits({ swallowBom: false, decoding: 'windows-1250' });
    expect(await ask()).toContain('<content>ď»żÄŤ</content>');
    sandbox.setHabits({ decoding: 'utf-8-blocks', shortReads: true });
    await writeFile(task.files.stdout, 'č'.repeat(10_000));
    expect((await ask()).match(/\ufffd/g)?.length ?? 0).toBeGreaterThan(2);
    expect(() => sandbox.setHabits({ offsetecho: 'nil' } as object)).toThrow('no quirk "offsetecho"');
  });
});

describe('ListChangedFilesForJob', () => {
  it('lists every file modified since the submission, live files included, each time', async () => {
    const { task, list } = await startJob();
    expect(await list()).toEqual([]);
    await mkdir(join(task.directory, 'sub dir', 'ř'), { recursive: true });
    await writeFile(task.files.stdout, '');
    await writeFile(join(task.directory, 'sub dir', 'ř', 'a, b & c.txt'), '');
    await writeFile(join(task.directory, 'line\nbreak \u001b'), '');
    await writeFile(join(task.directory, 'input'), '');
    await utimes(join(task.directory, 'input'), 1, 1);
    const names = ['/123/line\nbreak &#x1B;', '/123/stdout.txt', '/123/sub dir/ř/a, b &amp; c.txt'];
    expect(await list()).toEqual(names);
    await appendFile(join(task.directory, 'input'), 'changed');
    expect(await list()).toEqual(['/123/input', ...names]);
  });

  it('shows bytes that are no UTF-8 as U+FFFD, and cannot download such a name', async () => {
    const { task, list, file } = await startJob();
    await writeFile(Buffer.concat([Buffer.from(`${task.directory}/x`), Buffer.of(0xff)]), 'bytes');
    expect(await list()).toEqual(['/123/x\ufffd']);
    expect(await file('/123/x\ufffd')).toBe('File /123/x\ufffd does not exist.');
  });

  it('follows links within the jobs, not beyond, and not in circles', async () => {
    const { sandbox, task, list, file } = await startJob();
    const parent = await sandbox.submitJob({ tasks: [{}] });
    await mkdir(join(onlyTask(parent).directory, 'sub'));
    await writeFile(join(onlyTask(parent).directory, 'sub', 'result'), 'of the parent');
    await symlink(join(onlyTask(parent).directory, 'sub'), join(task.directory, 'parent'));
    await symlink('.', join(task.directory, 'circle'));
    await symlink('nowhere', join(task.directory, 'dangling'));
    await writeFile(join(sandbox.directory, 'secret'), 'secret');
    await symlink(sandbox.directory, join(task.directory, 'outside'));
    await symlink('../../../secret', join(task.directory, 'secret'));
    expect(await list()).toEqual(['/123/parent/result']);
    expect(await file('/123/parent/result')).toContain(Buffer.from('of the parent').toString('base64'));
    for (const name of ['/123/secret', '/123/outside/secret', '/../../secret', '/123/../../../secret', '/..', '/']) {
      expect(await file(name)).toMatch(/does not exist|is no file/);
    }
  });

  it('is nil until a held job is submitted, and writes names in three forms', async () => {
    const { sandbox, session, task, list } = await startJob();
    const held = await sandbox.submitJob({ jobId: '7', held: true, tasks: [{}] });
    const answer = async () => (await call(sandbox, LIST, jobAnd('7', session))).body;
    expect(await answer()).toBe(`<${LIST}Response xmlns="${NAMESPACE}" />`);
    sandbox.habits.nullMembers = true;
    expect(await answer()).toBe(
      `<${LIST}Response xmlns="${NAMESPACE}"><${LIST}Result xsi:nil="true" /></${LIST}Response>`,
    );
    await held.submit();
    expect(await answer()).toContain(`<${LIST}Result />`);

    await writeFile(task.files.log, '');
    sandbox.habits.listForm = 'triple-slash';
    expect(await list()).toEqual(['123///task.log']);
    sandbox.habits.listForm = 'bare';
    expect(await list()).toEqual(['123/task.log']);
    sandbox.setHabits({ nilEntries: true, extraFiles: { '/123/../../evil': 'x' } });
    expect((await call(sandbox, LIST, jobAnd('501', session))).body).toContain(
      `<${LIST}Result><string xsi:nil="true" /><string>123/task.log</string><string>/123/../../evil</string></`,
    );
  });
});

describe('DownloadFileFromCluster', () => {
  it('hands out the bytes in base64, by each of the three forms of a name', async () => {
    const { sandbox, task, file } = await startJob();
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 31) & 255));
    await mkdir(join(task.directory, 'sub'));
    await writeFile(join(task.directory, 'sub', 'file'), bytes);
    const expected = `<DownloadFileFromClusterResult>${bytes.toString('base64')}</DownloadFileFromClusterResult>`;
    for (const name of ['/123/sub/file', '123///sub/file', '123/sub/file']) expect(await file(name)).toBe(expected);
    sandbox.habits.oneLeadingSlash = true;
    expect(await file('/123/sub/file')).toBe(expected);
    for (const name of ['123/sub/file', '//123/sub/file']) expect(await file(name)).toMatch(/does not exist/);
  });

  it('writes an empty element for an empty file, and a fault or nothing for a missing one', async () => {
    const { sandbox, task, file } = await startJob();
    await writeFile(join(task.directory, 'empty'), '');
    expect(await file('/123/empty')).toBe('<DownloadFileFromClusterResult />');
    expect(await file('/123/missing')).toBe('File /123/missing does not exist.');
    expect(await file('/123')).toBe('/123 is no file.');
    sandbox.habits.missingFile = 'nil';
    expect(await file('/123/missing')).toBe(`<${FILE}Response xmlns="${NAMESPACE}" />`);
    sandbox.habits.nullMembers = true;
    expect(await file('/123/missing')).toBe('<DownloadFileFromClusterResult xsi:nil="true" />');
  });

  it('serves hostile names with their text', async () => {
    const { sandbox, file } = await startJob();
    sandbox.habits.extraFiles = { '/123/../../evil': 'evil' };
    expect(await file('/123/../../evil')).toContain(Buffer.from('evil').toString('base64'));
  });

  it('sees a file that shrinks and one that is replaced', async () => {
    const { task, file, parts } = await startJob();
    await writeFile(task.files.stdout, 'abcdef');
    await truncate(task.files.stdout, 2);
    expect(await file('/123/stdout.txt')).toContain('>YWI=<');
    expect(await parts(['9001', 'StandardOutputFile', 4])).toContain('<content />');
    await writeFile(join(task.directory, 'new'), 'new');
    await rename(join(task.directory, 'new'), task.files.stdout);
    expect(await parts(['9001', 'StandardOutputFile', 0])).toContain('<content>new</content>');
  });
});

describe('jobs of others', () => {
  it('look like a lost session, or are a fault of their own; jobs that do not exist are a fault', async () => {
    const sandbox = await startSandbox();
    const bob = await signIn(sandbox, BOB);
    await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    const text = async (jobId: string) => faultText(await call(sandbox, LIST, jobAnd(jobId, bob)));
    expect(await text('501')).toBe(`Session code ${bob} is not valid`);
    sandbox.habits.foreignJob = 'fault';
    expect(await text('501')).toBe('User bob may not use job 501.');
    expect(await text('502')).toBe('Specified job with id 502 does not exist.');
    await sandbox.submitJob({ jobId: '503', owner: BOB.username, tasks: [{}] });
    expect((await call(sandbox, LIST, jobAnd('503', bob))).status).toBe(200);
    expect(ALICE.username).toBe(sandbox.job('501')?.owner);
  });
});

function unescapeXml(text: string): string {
  return text
    .replace(/&#x([0-9A-F]+);/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
