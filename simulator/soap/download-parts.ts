/**
 * DownloadPartsOfJobFilesFromCluster: the text of live files from offsets on (docs/dev/soap.md 4.1,
 * docs/dev/servers.md 1).
 */
import { LIVE_FILE_NAMES, type LiveFileName } from '../../src/job.ts';
import { FILE_TYPE_OF, FILE_TYPES } from '../../src/remote/soap/contract.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';
import {
  closeParts,
  hasText,
  type OpenPart,
  openParts,
  relativePathOf,
  textOf,
  type WantedPart,
  wantedParts,
} from '../operations/live-parts.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { element, escapeText, nilElement, textElement } from './answer.ts';
import type { TaskFileOffset } from './request.ts';

/** Hands out the result in pieces, with constant memory. */
export async function* downloadParts(
  entries: readonly TaskFileOffset[],
  call: OperationCall,
  place: SandboxPlace,
): AsyncGenerator<string> {
  const { job } = call;
  const { habits } = place;
  const name = 'DownloadPartsOfJobFilesFromClusterResult';
  const open = await openParts(inServerOrder(entries, job), call, place);
  try {
    if (open.length === 0) {
      yield element(name);
      return;
    }
    yield `<${name}>`;
    for (const part of open) yield* partElement(part, habits);
    yield `</${name}>`;
  } finally {
    await closeParts(open);
  }
}

/** By file type, and the last task first: an order of the server's own. A nil offset is 0. */
function inServerOrder(entries: readonly TaskFileOffset[], job: SubmittedJob): WantedPart[] {
  const asked = entries.map(({ submittedTaskInfoId: taskId, fileType, offset }) => ({
    ...{ taskId, file: fileOfType(fileType) ?? null, offset: BigInt(offset ?? 0) },
  }));
  const rank = (part: WantedPart) =>
    [FILE_TYPES.indexOf(FILE_TYPE_OF[part.file]), -job.tasks.indexOf(part.task)] as const;
  return wantedParts(asked, job).sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    return left[0] - right[0] || left[1] - right[1];
  });
}

async function* partElement(part: OpenPart, habits: SandboxHabits): AsyncGenerator<string> {
  yield '<JobFileContentExt>';
  if (hasText(part)) {
    yield '<content>';
    for await (const text of textOf(part)) yield escapeText(text);
    yield '</content>';
  } else {
    yield element('content');
  }
  yield textElement('relativePath', `/${relativePathOf(part)}`);
  yield habits.offsetEcho === 'nil' ? nilElement('offset') : textElement('offset', String(part.offset));
  yield textElement('fileType', FILE_TYPE_OF[part.file]) + textElement('submittedTaskInfoId', part.task.taskId);
  yield '</JobFileContentExt>';
}

export const fileOfType = (type: unknown): LiveFileName | undefined =>
  LIVE_FILE_NAMES.find((file) => FILE_TYPE_OF[file] === type);
