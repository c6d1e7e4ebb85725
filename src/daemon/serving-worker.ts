/** The other side of serving-thread.ts: what runs in the thread. */
import { parentPort } from 'node:worker_threads';
import { asJobtailError } from '../errors.ts';
import type { Served } from '../view/http/server.ts';
import type { FromThread, ToThread } from './serving-thread.ts';

/** Serves until the agent ends it. @throws JobtailError, which ends the thread */
export async function serveInThread<Pulse>(
  serve: (onFailure: (error: unknown) => void) => Promise<Served>,
  onPulse: (pulse: Pulse) => void = () => {},
): Promise<void> {
  const agent = parentPort;
  if (agent === null) throw new Error('this is a thread of the agent');
  const report = (message: FromThread) => agent.postMessage(message);
  let served: Served | undefined;
  agent.on('message', (message: ToThread & Pulse) => {
    if (message.kind === 'close') return void Promise.resolve(served?.close()).finally(() => process.exit());
    onPulse(message);
    report({ kind: 'pulse' });
  });
  try {
    served = await serve((error) => report({ kind: 'failure', message: asJobtailError(error).message }));
  } catch (thrown) {
    throw asJobtailError(thrown);
  }
  report({ kind: 'serving', port: served.port });
}
