/** SIGTERM and SIGINT as an AbortSignal: the first one ends the work in order, a second one ends the process. */
import { setMaxListeners } from 'node:events';
import { EXIT } from '../errors.ts';

export interface StopSignals {
  readonly signal: AbortSignal;
  /** Leaves the signals of the process as they were. */
  dispose(): void;
}

export function stopSignals(): StopSignals {
  const controller = new AbortController();
  // Every call in flight listens to it.
  setMaxListeners(0, controller.signal);
  const stop = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted);
    controller.abort();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  return {
    signal: controller.signal,
    dispose() {
      process.off('SIGTERM', stop);
      process.off('SIGINT', stop);
    },
  };
}
