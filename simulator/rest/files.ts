/** The listing and whole files (docs/dev/rest.md 3.3 to 3.5). */
import { join } from 'node:path';
import { changedFiles, pathOfListed } from '../cluster/job-files.ts';
import type { Answer } from '../exchange.ts';
import { isPipe } from '../operations/pipe-reads.ts';
import { base64Of, bytesOf, openWhole, type WholeFile } from '../operations/whole-file.ts';
import { answerOf, type RestCall, streamed } from './call.ts';
import { askedName, listedName } from './names.ts';
import { RestFailure } from './problems.ts';

/** Of files that are listed besides the real ones. */
const EXTRA_FILES_MS = Date.UTC(2021, 3, 1);

export async function listing({ job, release, place }: RestCall): Promise<Answer> {
  const { cluster, habits } = place;
  const files = await changedFiles(job, cluster.directory, true);
  if (files === null) return answerOf(null);
  const listed = [
    ...files.map((file) => ({ name: listedName(file, release), modifiedMs: file.modifiedMs })),
    ...Object.keys(habits.extraFiles).map((name) => ({ name, modifiedMs: EXTRA_FILES_MS })),
  ];
  const entries = listed.map(({ name, modifiedMs }) => ({
    FileName: name,
    LastModifiedDate: dateOf(modifiedMs),
  }));
  return answerOf(entries);
}

/** Whole seconds. */
function dateOf(modifiedMs: number): string {
  return `${new Date(modifiedMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)}Z`;
}

export async function wholeFile(name: string, call: RestCall): Promise<Answer> {
  const { job, release, place } = call;
  if (job.submittedAtNs === undefined) return answerOf(null);
  if (name === '') throw new RestFailure('emptyPath');
  const asked = askedName(name, job, release);
  const extra = extraFile(asked, place.habits.extraFiles);
  if (extra !== undefined) return answerOf(Buffer.from(extra).toString('base64'));
  const path = asked === undefined ? undefined : pathOfListed(job, asked);
  if (path !== undefined && (await isPipe(path))) {
    return answerOf((await place.pipeReads.read(path, call.user)).toString('base64'));
  }
  const requested = `${job.jobId}/${name.replace(/^\/+/, '')}`;
  const file = path === undefined ? undefined : await open({ path, listed: asked ?? '' }, requested, call);
  if (file === undefined) {
    throw new RestFailure('noSuchFile', requested, `No such file. Path: '${join(job.directory, name)}'.`);
  }
  return streamed(base64String(file));
}

/** An unreadable file is reported in the words of the SFTP server. */
async function open(
  file: { readonly path: string; readonly listed: string },
  requested: string,
  call: RestCall,
): Promise<WholeFile | undefined> {
  try {
    return await openWhole(file, call, call.place);
  } catch (error) {
    const isForbidden = (error as NodeJS.ErrnoException).code === 'EACCES';
    if (isForbidden) throw new RestFailure('unreadableFile', requested, 'Permission denied');
    throw new RestFailure('directory', requested, 'Failure');
  }
}

/** The text of a file that is listed besides the real ones, with the slash that its name may lack in the listing. */
function extraFile(asked: string | undefined, extraFiles: Readonly<Record<string, string>>): string | undefined {
  const listed = [asked, asked?.slice(1)].find((name) => name !== undefined && Object.hasOwn(extraFiles, name));
  return listed === undefined ? undefined : extraFiles[listed];
}

async function* base64String(file: WholeFile): AsyncGenerator<string> {
  try {
    yield '"';
    yield* base64Of(bytesOf(file));
    yield '"';
  } finally {
    await file.handle.close();
  }
}
