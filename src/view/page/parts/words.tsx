/** Text from outside, states and failures, as they stand anywhere on the page. */
import type { ComponentChildren } from 'preact';
import { phaseOf } from '../../../job-information.ts';
import { printable } from '../../../printable.ts';
import type { ShownError } from '../../contract/addresses.ts';
import type { JobSummary, ReportedTime } from '../../contract/events.ts';
import { isOwn } from '../condition.ts';
import { live } from '../live.ts';
import { moment, shortened } from '../text/units.ts';
import { Icon } from './button.tsx';

/** A name or a message: one line of text that nothing in it turns round. */
export function Outside({ text }: { text: string }) {
  return <bdi class="outside">{printable(text)}</bdi>;
}

/** What to do: what stands between backquotes is typed as it is. */
export function Hint({ text }: { text: string }) {
  return (
    <span class="hint">
      {text
        .split(/`([^`]+)`/)
        .map((part, index) => (index % 2 === 1 ? <code key={index}>{printable(part)}</code> : printable(part)))}
    </span>
  );
}

interface FailureProps {
  readonly error: { readonly message: string; readonly hint?: string | null | undefined };
  readonly children?: ComponentChildren;
}

/** What is wrong, and what to do. */
export function Failure({ error, children }: FailureProps) {
  return (
    <p class="failure">
      <Icon name="warning" />
      <span>
        <Outside text={error.message} /> {children}
        {error.hint != null && <Hint text={error.hint} />}
      </span>
    </p>
  );
}

/** What is wrong with a job or a file, unless the banner shows it for all. */
export function OwnFailure({ error }: { error: ShownError | null | undefined }) {
  const condition = live.condition.value;
  return error != null && isOwn(error, condition) ? <Failure error={error} /> : null;
}

/** What the agent does about a job in each state. */
export const MEANINGS: Readonly<Record<JobSummary['state'], string>> = {
  watched: 'The agent follows it.',
  ending: 'The job is over: the agent compares all files with the server.',
  ended: 'It is not followed any more: agent unwatch.',
  settled: 'The job is over and all of it is here: the agent requests nothing more.',
};

/** The state of a job on the cluster, or in the agent if the middleware reports none. */
export function JobState({ job }: { job: JobSummary }) {
  const { jobState, state, stalledAt } = job;
  const phase = phaseOf(jobState);
  const word = jobState ?? state;
  const kind = /fail|cancel|error/i.test(word)
    ? 'bad'
    : phase === 'active'
      ? 'active'
      : phase === 'over'
        ? 'over'
        : 'plain';
  return (
    <span class="states">
      <span class={`state ${kind} ${state === 'settled' ? 'settled' : ''}`} title={MEANINGS[state]}>
        <Outside text={word} />
      </span>
      {jobState !== null && state !== 'watched' && (
        <span class="state plain settled" title={MEANINGS[state]}>
          {state}
        </span>
      )}
      {stalledAt !== null && (
        <span class="state bad" title="It runs, and no live file grows.">
          stalled
        </span>
      )}
    </span>
  );
}

/** A time that the middleware reports: by the clock of this machine, or as text if it has no zone. */
export function Time({ time, now }: { time: ReportedTime; now: number }) {
  if (time.ms !== null) return <time title={time.text}>{moment(time.ms, now)}</time>;
  return (
    <span title={`${time.text} (reported without a time zone)`}>
      <Outside text={shortened(time.text.replace('T', ' '), now)} />
    </span>
  );
}

export function Fact({ word, children }: { word: ComponentChildren; children: ComponentChildren }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>{children}</dd>
    </div>
  );
}
