/** The sync of results that runs, or the last one. */
import type { JobDetail } from '../../contract/events.ts';
import { ProgressBar } from '../parts/bar.tsx';
import { Failure } from '../parts/words.tsx';
import { bytes, counted, grouped } from '../text/units.ts';

/** What comes right now and how fast, or what the last sync brought. */
export function LastSync({ job: { lastLook } }: { job: Pick<JobDetail, 'lastLook'> }) {
  if (lastLook === null) return <span class="fine">The results are not listed yet.</span>;
  const { done, wanted, wantedBytes, way, bytesPerSecond, endedAt, fallback } = lastLook;
  const by = way === null ? '' : ` by ${way === 'soap' ? 'the service' : way}`;
  const rate = bytesPerSecond > 0 ? `, ${bytes(bytesPerSecond)}/s` : '';
  return (
    <>
      {endedAt === null && wanted > 0 && (
        <ProgressBar
          done={wantedBytes === null ? done / wanted : Math.min(1, lastLook.bytes / Math.max(1, wantedBytes))}
          label="Results on the way"
        />
      )}
      <span class="fine">
        {endedAt === null
          ? `on the way: ${grouped(done)} of ${counted(wanted, 'file')}, ${bytes(lastLook.bytes)}${
              wantedBytes === null ? '' : ` of ${bytes(wantedBytes)}`
            }`
          : `The last sync checked ${counted(wanted, 'file')} and transferred ${bytes(lastLook.bytes)}`}
        {by}
        {rate}
      </span>
      {fallback !== null && <Failure error={{ message: 'Files come by the service, not directly.', hint: fallback }} />}
    </>
  );
}
