/** A time that the middleware reports: by the clock of this machine, or as text if it has no zone. */
import type { ReportedTime } from '../../contract/events.ts';
import { moment } from '../text/units.ts';
import { Outside } from './words.tsx';

export function Time({ time, now }: { time: ReportedTime; now: number }) {
  if (time.ms !== null) return <time title={time.text}>{moment(time.ms, now)}</time>;
  return (
    <span title={`${time.text} (reported without a time zone)`}>
      <Outside text={time.text.replace('T', ' ').slice(0, 16)} />
    </span>
  );
}
