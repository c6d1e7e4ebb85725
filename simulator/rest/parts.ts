/** Parts of live files (docs/dev/rest.md 3.1, 3.2), in the order of the job's tasks. */
import type { LiveFileName } from '../../src/job.ts';
import { FILE_TYPES } from '../../src/remote/rest/contract.ts';
import type { Answer } from '../exchange.ts';
import {
  type AskedPart,
  closeParts,
  hasText,
  type OpenPart,
  openParts,
  relativePathOf,
  textOf,
  wantedParts,
} from '../operations/live-parts.ts';
import { type RestCall, streamed } from './call.ts';
import { escaped, jsonOf } from './json.ts';
import { RestFailure } from './problems.ts';

/** Opens all of them first: one that cannot be opened fails all. */
export async function parts(asked: readonly (AskedPart | null)[], call: RestCall): Promise<Answer> {
  const { job, place } = call;
  // One that is validated has no such offset; and what is not there has no type.
  const isOfJob = (part: AskedPart | null) => job.tasks.some(({ taskId }) => taskId === part?.taskId);
  if (asked.some((part) => isOfJob(part) && (part?.file === null || (part?.offset ?? 0n) < 0n))) {
    throw new RestFailure('unexpected');
  }
  const rank = new Map(job.tasks.map((task, index) => [task, index]));
  const wanted = wantedParts(asked, job).sort((a, b) => (rank.get(a.task) ?? 0) - (rank.get(b.task) ?? 0));
  const open = await openParts(wanted, call, place);
  return streamed(listOf(open, call));
}

/** The file of a number; null for a number that is none. */
export function fileOfType(type: string): LiveFileName | null {
  const found = Object.entries(FILE_TYPES).find(([, number]) => String(number) === type);
  return (found?.[0] as LiveFileName | undefined) ?? null;
}

async function* listOf(open: readonly OpenPart[], call: RestCall): AsyncGenerator<string> {
  try {
    yield '[';
    for (const [index, part] of open.entries()) {
      if (index > 0) yield ',';
      yield* entryOf(part, call);
    }
    yield ']';
  } finally {
    await closeParts(open);
  }
}

async function* entryOf(part: OpenPart, { release, place }: RestCall): AsyncGenerator<string> {
  yield '{"Content":"';
  if (hasText(part))
    for await (const text of textOf(part, { stream: release.decoder === 'stream' })) yield escaped(text);
  const members = {
    RelativePath: relativePathOf(part),
    Offset: place.habits.offsetEcho === 'nil' ? null : part.offset,
    FileType: FILE_TYPES[part.file],
    SubmittedTaskInfoId: BigInt(part.task.taskId),
  };
  yield `",${jsonOf(members).slice(1)}`;
}
