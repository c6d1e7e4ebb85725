/** The generations of a live file: which one a link leads to, and why each began. */
import type { Generations } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import { useAnswer } from '../parts/hooks.ts';
import { Outside } from '../parts/words.tsx';
import { hashOf, type OpenedFile } from '../route.ts';
import { grouped } from '../text/units.ts';

/** Without an answer while there is one generation alone. */
export function useGenerations(jobId: string, { taskId, file, version }: OpenedFile, generation = 1) {
  const isNeeded = generation > 1 || version !== undefined;
  const to = address('generations', { job: jobId, task: taskId, file });
  const ask = async () => (isNeeded ? await askJson<Generations>(to) : undefined);
  return useAnswer(ask, [to, generation, isNeeded]);
}

export interface Resolved {
  /** Without a version: the present generation, as it grows. */
  readonly opened: OpenedFile;
  /** The generation of the link was rotated, and is not kept. */
  readonly isGone: boolean;
}

/** What a link leads to; undefined while that is not known. */
export function resolved(opened: OpenedFile, generations: Generations | undefined): Resolved | undefined {
  const { version, ...place } = opened;
  if (version === undefined) return { opened, isGone: false };
  if (generations === undefined) return undefined;
  if (version === generations.now) return { opened: place, isGone: false };
  const former = generations.former.find((one) => one.version === version || `g${one.generation}` === version);
  return former === undefined
    ? { opened: { taskId: place.taskId, file: place.file }, isGone: true }
    : { opened: { ...place, version: former.version }, isGone: false };
}

interface WhyProps {
  readonly jobId: string;
  readonly opened: OpenedFile;
  readonly generations: Generations;
}

/** Why the shown generation began, with links to the bytes before and after, and to the present generation. */
export function Why({ jobId, opened: { taskId, file, version }, generations }: WhyProps) {
  const { now, former, began } = generations;
  const present = Number(now.slice(1));
  const shown = version === undefined ? present : former.find((one) => one.version === version)?.generation;
  if (shown === undefined || present < 2) return null;
  const reason = began.find(({ generation }) => generation === shown);
  const before = former.find(({ generation }) => generation === shown - 1);
  const at = reason?.at ?? 0;
  const link = (generation: number, place?: number) =>
    hashOf({ page: 'live', jobId, files: [{ taskId, file, at: place, version: `g${generation}` }] });
  return (
    <p class="notice plain why">
      <span>
        Generation {shown}
        {shown > 1 && ' began'}
        {reason !== undefined ? ': ' : shown > 1 && '; the reason is not kept.'}
        {reason !== undefined && <Outside text={reason.reason} />}
      </span>
      {before !== undefined && <a href={link(shown - 1, at)}>Before, at byte {grouped(at)}</a>}
      {reason !== undefined && <a href={link(shown, at)}>After</a>}
      {shown < present && <a href={link(present)}>Generation {present}, the present one</a>}
    </p>
  );
}
