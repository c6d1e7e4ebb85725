/** The one place where the page shows that it is not current: why, since when, and when it is tried again. */
import { useEffect } from 'preact/hooks';
import { isStale, type Problem } from '../condition.ts';
import { useLive } from '../live.ts';
import { duration, moment } from '../text/units.ts';
import { Icon } from './button.tsx';
import { Hint, Outside } from './words.tsx';

export function Banner() {
  const live = useLive();
  const condition = live.condition.value;
  const stale = isStale(condition);
  // States and colours turn grey by this (base.css).
  useEffect(() => {
    if (stale) document.documentElement.dataset['stale'] = condition.kind;
    else delete document.documentElement.dataset['stale'];
  }, [stale, condition.kind]);
  return (
    <div class="banner" role="status">
      {'problem' in condition && <Shown problem={condition.problem} now={live.now.value} />}
    </div>
  );
}

function Shown({ problem: { message, hint, since, next }, now }: { problem: Problem; now: number }) {
  return (
    <p class="failure">
      <Icon name="warning" />
      <span>
        <strong>
          <Outside text={message} />
        </strong>{' '}
        {since !== null && (
          <span class="since">
            Since {moment(since, now)} ({duration(now - since)}).
          </span>
        )}{' '}
        {next !== null && <span class="since">Next attempt {whenOf(next, now)}.</span>}
        {hint !== null && <Hint text={hint} />}
      </span>
    </p>
  );
}

function whenOf(next: number | string, now: number): string {
  if (typeof next === 'string') return next;
  return next <= now ? 'now' : `in ${duration(next - now)}`;
}
