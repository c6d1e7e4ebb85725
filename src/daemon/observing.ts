/** Tells everyone who counts what happens: the standing of the service, the metrics if there are any, and the view. */
import type { AgentFigures } from '../view/events/figures.ts';
import type { Observer } from './connection.ts';
import type { Metrics } from './metrics.ts';
import type { Standing } from './standing.ts';

export interface ObservingOptions {
  readonly standing: Standing;
  readonly figures: AgentFigures;
  readonly metrics: () => Metrics | undefined;
}

export function observing({ standing, figures, metrics }: ObservingOptions): Observer {
  return {
    call(event) {
      standing.note(event.outcome);
      metrics()?.call(event);
      figures.call(event);
    },
    answered: (workMs, isPause) => metrics()?.answered(workMs, isPause),
    signIn(event) {
      const outcome = event.kind === 'failed' ? event.error.code : 'ok';
      standing.note(outcome);
      metrics()?.signIn(outcome);
      figures.signIn(outcome);
    },
    appended(bytes) {
      metrics()?.appended(bytes);
      figures.mirrored(bytes);
    },
    fetched(bytes, kind) {
      metrics()?.fetched(bytes, kind);
      figures.fetched(bytes);
    },
    tasksFound: (tasks, by) => metrics()?.tasksFound(tasks, by),
    mismatch: (kind) => metrics()?.mismatch(kind),
    jobLook: (outcome) => metrics()?.jobLook(outcome),
  };
}
