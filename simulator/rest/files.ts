/** The listing and whole files (docs/dev/rest.md 3.3 to 3.5). */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LISTED_FILE } from '../../src/remote/rest/contract.ts';
import { changedFiles, pathOfListed } from '../cluster/job-files.ts';
import type { Answer } from '../exchange.ts';
import type { SandboxHabits } from '../habits.ts';
import { isPipe } from '../operations/pipe-reads.ts';
import { base64Of, bytesOf, openWhole, type WholeFile } from '../operations/whole-file.ts';
import { answerOf, type RestCall, streamed } from './call.ts';
import { askedName, listedName } from './names.ts';
import { RestFailure } from './problems.ts';

const MIB = 1024 * 1024;
/** Of files that are listed besides the real ones. */
const EXTRA_FILES_MS = Date.UTC(2021, 3, 1);

export async function listing({ job, release, place }: RestCall): Promise<Answer> {
  const { cluster, habits } = place;
  const files = await changedFiles(job, cluster.directory, {
    everything: true,
    wholeSeconds: habits.wholeSecondListing,
  });
  if (files === null) return answerOf(null, place);
  // That of a job that was deleted.
  if (!(await isThere(job.directory))) throw new RestFailure('unexpected');
  const listed = [
    ...files.map((file) => ({
      name: listedName(file, job, release, habits.absolutePaths),
      modifiedMs: file.modifiedMs,
    })),
    ...Object.keys(habits.extraFiles).map((name) => ({ name, modifiedMs: EXTRA_FILES_MS })),
  ];
  const entries = listed.map(({ name, modifiedMs }) =>
    release.listing === 'names' ? name : { [LISTED_FILE.name]: name, [LISTED_FILE.modified]: dateOf(modifiedMs) },
  );
  return answerOf(habits.nilEntries ? [null, ...entries] : entries, place);
}

/** Whole seconds. */
function dateOf(modifiedMs: number): string {
  return `${new Date(modifiedMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)}Z`;
}

export async function wholeFile(name: string, call: RestCall): Promise<Answer> {
  const { job, release, place } = call;
  if (job.submittedAtNs === undefined) return answerOf(null, place);
  if (name === '') throw new RestFailure('emptyPath');
  const asked = askedName(name, job, release);
  const extra = extraFile(asked, place.habits.extraFiles);
  if (extra !== undefined) return answerOf(Buffer.from(extra).toString('base64'), place);
  const path = asked === undefined ? undefined : pathOfListed(job, asked);
  if (path !== undefined && (await isPipe(path))) {
    return answerOf((await place.pipeReads.read(path, call.user)).toString('base64'), place);
  }
  const requested = `${job.jobId}/${name.replace(/^\/+/, '')}`;
  const file = path === undefined ? undefined : await open({ path, listed: asked ?? '' }, requested, call);
  if (file === undefined) {
    throw new RestFailure('noSuchFile', requested, `No such file. Path: '${join(job.directory, name)}'.`);
  }
  await readWhole(file, call);
  return streamed(base64String(file, place.habits));
}

/** The time that the service takes to read a file before it sends the first byte. */
async function readWhole({ handle, size }: WholeFile, { signal, place }: RestCall): Promise<void> {
  const { firstByteMsPerMiB } = place.habits;
  if (firstByteMsPerMiB === 0) return;
  try {
    await sleep((firstByteMsPerMiB * size) / MIB, undefined, { signal });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

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
    throw new RestFailure('unreadableFile', requested, isForbidden ? 'Permission denied' : 'Failure');
  }
}

/** The text of a file that is listed besides the real ones, with the slash that its name may lack in the listing. */
function extraFile(asked: string | undefined, extraFiles: Readonly<Record<string, string>>): string | undefined {
  const listed = [asked, asked?.slice(1)].find((name) => name !== undefined && Object.hasOwn(extraFiles, name));
  return listed === undefined ? undefined : extraFiles[listed];
}

async function* base64String(file: WholeFile, { fileAccess, escapesBase64 }: SandboxHabits): AsyncGenerator<string> {
  const bytes = bytesOf(file);
  try {
    yield '"';
    for await (const piece of base64Of(fileAccess === 'firecrest' ? throughText(bytes) : bytes)) {
      yield escapesBase64 ? piece.replaceAll('+', '\\u002B') : piece;
    }
    yield '"';
  } finally {
    await file.handle.close();
  }
}

/** What FirecREST makes of bytes: they are decoded as UTF-8, whatever they are. */
async function* throughText(reads: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for await (const read of reads) yield Buffer.from(decoder.decode(read, { stream: true }));
  yield Buffer.from(decoder.decode());
}
