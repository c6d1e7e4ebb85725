/** The one place where the page shows that it is not current: why, since when, and when it is tried again. */
import { useEffect } from 'preact/hooks';
import { isStale } from '../condition.ts';
import { live } from '../live.ts';
import { duration, moment } from '../text/units.ts';
import { Failure } from './words.tsx';

export function Banner() {
  const condition = live.condition.value;
  const stale = isStale(condition);
  const { problem } = condition;
  const now = live.now.value;
  // States and colours turn grey by this (base.css).
  useEffect(() => {
    if (stale) document.documentElement.dataset['stale'] = condition.kind;
    else delete document.documentElement.dataset['stale'];
  }, [stale, condition.kind]);
  return (
    <div class="banner" role="status">
      {problem !== undefined && (
        <Failure error={problem}>
          {problem.since !== null && (
            // It counts: only the failure is read out.
            <span class="since" aria-live="off">
              Since {moment(problem.since, now)} ({duration(now - problem.since)}).
            </span>
          )}{' '}
          {problem.next !== null && (
            <span class="since" aria-live="off">
              Next attempt {whenOf(problem.next, now)}.
            </span>
          )}
        </Failure>
      )}
    </div>
  );
}

function whenOf(next: number | string, now: number): string {
  if (typeof next === 'string') return next;
  return next <= now ? 'now' : `in ${duration(next - now)}`;
}
