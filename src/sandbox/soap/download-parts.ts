/**
 * DownloadPartsOfJobFilesFromCluster: the text of live files from offsets on (docs/interface.md 4.1,
 * docs/servers.md 1).
 */
import type { FileHandle } from 'node:fs/promises';
import { relative } from 'node:path';
import type { LiveFileName } from '../../job.ts';
import { FILE_TYPES, type FileType } from '../../remote/soap/contract.ts';
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import { openWithin, readRange, visibleSize } from '../cluster/job-files.ts';
import { type SubjectFile, staleBytes } from '../faults.ts';
import type { SandboxHabits } from '../habits.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { ServiceFault } from '../refusals.ts';
import { element, escapeText, memberElement, nilElement, textElement } from './answer.ts';
import { BLOCK_BYTES, type DecodingOptions, decodeBlocks } from './decoding.ts';
import type { TaskFileOffset } from './request-schema.ts';

/** The live file of each type. */
export const FILE_OF_TYPE: Readonly<Record<FileType, LiveFileName>> = {
  LogFile: 'log',
  ProgressFile: 'progress',
  StandardErrorFile: 'stderr',
  StandardOutputFile: 'stdout',
};

/** No file of ext4 is longer, and none of its files can be read from further on: the service that tries fails. */
const MAX_OFFSET = 2n ** 44n;

interface Wanted {
  readonly task: SubmittedTask;
  readonly fileType: FileType;
  readonly offset: bigint;
}

interface OpenPart extends Wanted {
  readonly file: FileHandle;
  readonly size: number;
}

/** Hands out the result in pieces, with constant memory. All files are opened first: one that cannot be fails all. */
export async function* downloadParts(
  entries: readonly (TaskFileOffset | null)[],
  { job, rules }: OperationCall,
  { cluster, habits, flushing }: SandboxPlace,
): AsyncGenerator<string> {
  const limit = habits.maxPartsEntries;
  if (limit !== null && entries.length > limit) {
    throw new ServiceFault(`The request asks for ${entries.length} files, ${limit} are allowed.`);
  }
  if (habits.unknownTask === 'fault') refuseUnknown(entries, job);
  const name = 'DownloadPartsOfJobFilesFromClusterResult';
  const open: OpenPart[] = [];
  try {
    for (const wanted of inServerOrder(entries, job)) {
      const file = await openWithin(cluster.directory, pathOf(wanted));
      if (file === undefined) continue;
      const bytes = await sizeOf(file, wanted);
      const flushed = flushing.flushedSize(wanted.task, pathOf(wanted), bytes);
      open.push({ ...wanted, file, size: visibleSize(flushed, staleBytes(rules, subjectOf(wanted))) });
    }
    if (open.length === 0 && !habits.nilEntries) {
      yield element(name);
      return;
    }
    yield `<${name}>${habits.nilEntries ? nilElement('JobFileContentExt') : ''}`;
    for (const part of open) yield* partElement(part, job, habits);
    yield `</${name}>`;
  } finally {
    await Promise.all(open.map(({ file }) => file.close()));
  }
}

/**
 * By file type, and the last task first: an order of the server's own. What names no file of this job is left out
 * without a word; a nil offset is 0.
 */
function inServerOrder(entries: readonly (TaskFileOffset | null)[], job: SubmittedJob): Wanted[] {
  const wanted = entries.flatMap((entry) => {
    const task = job.tasks.find(({ taskId }) => taskId === entry?.submittedTaskInfoId);
    const fileType = entry?.fileType;
    if (task === undefined || fileType == null) return [];
    return [{ task, fileType, offset: BigInt(entry?.offset ?? 0) }];
  });
  const rank = ({ task, fileType }: Wanted) => [FILE_TYPES.indexOf(fileType), -job.tasks.indexOf(task)] as const;
  return wanted.sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    return left[0] - right[0] || left[1] - right[1];
  });
}

function refuseUnknown(entries: readonly (TaskFileOffset | null)[], job: SubmittedJob): void {
  const unknown = entries.find((entry) => entry?.submittedTaskInfoId != null && !hasTask(job, entry));
  if (unknown == null) return;
  throw new ServiceFault(`Specified task with id ${unknown.submittedTaskInfoId} does not exist.`);
}

const hasTask = (job: SubmittedJob, { submittedTaskInfoId }: TaskFileOffset) =>
  job.tasks.some(({ taskId }) => taskId === submittedTaskInfoId);

function pathOf({ task, fileType }: Wanted): string {
  return task.files[FILE_OF_TYPE[fileType]];
}

const subjectOf = ({ task, fileType }: Wanted): SubjectFile => ({
  taskId: task.taskId,
  file: FILE_OF_TYPE[fileType],
});

/** Bytes of the whole file; one that cannot be read from the offset on is closed. */
async function sizeOf(file: FileHandle, { task, fileType, offset }: Wanted): Promise<number> {
  try {
    if (offset < 0n) throw new ServiceFault(`The offset ${offset} is negative.`);
    if (offset > MAX_OFFSET) throw new ServiceFault(`EINVAL: the offset ${offset} is no place in a file.`);
    const stats = await file.stat();
    if (!stats.isFile()) throw new ServiceFault(`The ${fileType} of task ${task.taskId} is no file.`);
    return stats.size;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* partElement(part: OpenPart, job: SubmittedJob, habits: SandboxHabits): AsyncGenerator<string> {
  yield '<JobFileContentExt>';
  if (part.offset < part.size) {
    yield '<content>';
    const reads = readRange(part.file, {
      start: Number(part.offset),
      end: part.size,
      ...(habits.shortReads && { readBytes: shortReads() }),
    });
    for await (const text of decodeBlocks(reads, decodingOf(habits))) yield escapeText(text);
    yield '</content>';
  } else {
    yield habits.emptyContent === 'empty' ? element('content') : memberElement('content', null, habits.nullMembers);
  }
  yield memberElement('relativePath', relativePathOf(part, job, habits), habits.nullMembers);
  yield offsetElement(part, habits);
  yield textElement('fileType', part.fileType) + textElement('submittedTaskInfoId', part.task.taskId);
  yield '</JobFileContentExt>';
}

function decodingOf({ decoding, swallowBom }: SandboxHabits): DecodingOptions {
  if (decoding === 'utf-8-stream') return { stream: true };
  return { codePage: decoding === 'utf-8-blocks' ? undefined : decoding, swallowBom };
}

/** Lengths of irregular reads, the same each time. */
function shortReads(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return 1 + (state % (3 * BLOCK_BYTES));
  };
}

function relativePathOf(wanted: Wanted, job: SubmittedJob, { relativePath }: SandboxHabits): string | null {
  if (relativePath === 'none') return null;
  const from = relativePath === 'job' ? job.directory : wanted.task.directory;
  return `/${relative(from, pathOf(wanted))}`;
}

function offsetElement({ offset }: Wanted, { offsetEcho }: SandboxHabits): string {
  if (offsetEcho === 'nil') return nilElement('offset');
  return textElement('offset', offsetEcho === 'zero' ? '0' : String(offset));
}
