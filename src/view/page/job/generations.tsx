/** The generations of a live file: which one is shown, and why each began. */
import type { Generations } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import { useLive } from '../live.ts';
import { useAnswer } from '../parts/hooks.ts';
import { Outside } from '../parts/words.tsx';
import { hashOf, type OpenedFile } from '../route.ts';
import { ago, bytes, grouped } from '../text/units.ts';

/** Undefined while there is one generation alone, and before the response. */
export function useGenerations(
  jobId: string,
  { taskId, file, version }: OpenedFile,
  generation = 1,
): Generations | undefined {
  const isNeeded = generation > 1 || version !== undefined;
  const to = address('generations', { job: jobId, task: taskId, file });
  const ask = async (signal: AbortSignal) => (isNeeded ? await askJson<Generations>(to, { signal }) : undefined);
  return useAnswer(ask, [to, generation, isNeeded]).answer;
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

const presentOf = ({ now }: Generations) => Number(now.slice(1));

interface FormerProps {
  readonly generations: Generations;
  readonly version: string | undefined;
  /** Another generation; undefined: the present one. */
  readonly onShow: (version: string | undefined) => void;
}

export function Former({ generations, version, onShow }: FormerProps) {
  const { now } = useLive();
  return (
    <select
      class="generations"
      aria-label="Generation"
      title="What the file was before it was rewritten"
      value={version ?? ''}
      onChange={(event) => onShow(event.currentTarget.value || undefined)}
    >
      <option value="">now: generation {presentOf(generations)}</option>
      {generations.former.map((one) => (
        <option key={one.version} value={one.version}>
          generation {one.generation}, {one.name}: {bytes(one.bytes)}, {ago(one.modifiedAt, now.peek())}
        </option>
      ))}
    </select>
  );
}

/** The generation of a version; undefined: the present one. */
function numberOf(generations: Generations, version: string | undefined): number | undefined {
  if (version === undefined || version === generations.now) return presentOf(generations);
  return generations.former.find((one) => one.version === version)?.generation;
}

interface WhyProps {
  readonly jobId: string;
  readonly opened: OpenedFile;
  readonly generations: Generations;
}

/** Why the shown generation began, with the bytes before and after. */
export function Why({ jobId, opened: { taskId, file, version }, generations }: WhyProps) {
  const { former, began } = generations;
  const shown = numberOf(generations, version);
  if (shown === undefined || shown < 2) return null;
  const reason = began.find(({ generation }) => generation === shown);
  const before = former.find(({ generation }) => generation === shown - 1);
  const at = reason?.at ?? 0;
  const link = (generation: number) =>
    hashOf({ page: 'live', jobId, files: [{ taskId, file, at, version: `g${generation}` }] });
  return (
    <p class="notice plain why">
      <span>
        Generation {shown} began
        {reason === undefined ? '; the reason is not kept.' : ': '}
        {reason !== undefined && <Outside text={reason.reason} />}
      </span>
      {before !== undefined && reason !== undefined && (
        <>
          <a href={link(shown - 1)}>Before, at byte {grouped(at)}</a>
          <a href={link(shown)}>After</a>
        </>
      )}
    </p>
  );
}
