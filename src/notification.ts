/** What people and programs are notified of: the events, and their JSON. docs/notify.md explains both. */

/**
 * finished, failed, canceled, started: the job state changed. stalled: it runs, and does not grow. truncated, rewritten:
 * a live file began a new generation. match: a line of a live file matches. results-complete: the last complete pass
 * is done. agent-degraded: the agent cannot do its work.
 */
export const EVENT_TYPES = [
  'finished',
  'failed',
  'canceled',
  'started',
  'stalled',
  'truncated',
  'rewritten',
  'match',
  'results-complete',
  'agent-degraded',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The JSON of an event: keys are added, never taken away. Texts are as the job wrote them. */
export interface NotifyEvent {
  /** Stays the same when a delivery is repeated. */
  readonly id: string;
  /** `test`: of `agent notify --test`. */
  readonly type: EventType | 'test';
  /** ISO 8601. */
  readonly time: string;
  /** How many events this one stands for. */
  readonly count: number;
  readonly jobId?: string;
  readonly jobName?: string;
  readonly taskId?: string;
  /** stdout, stderr, log or progress. */
  readonly file?: string;
  readonly generation?: number;
  /** The number of the line in its generation, from 1; absent where earlier lines were not counted. */
  readonly line?: number;
  readonly text?: string;
  readonly reason?: string;
  /** Where it stands for events of several jobs: some of them. */
  readonly jobs?: readonly string[];
}

/** Length of the pieces in which a line is compared with a pattern, and of the text that is sent. */
export const MAX_LINE_CHARACTERS = 4_096;
