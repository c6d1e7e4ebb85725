/** The thread of the sockets: a slow query there delays no poll. */
import { parentPort, workerData } from 'node:worker_threads';
import type { ApiThreadData } from '../daemon/api-thread.ts';
import type { FromThread, ToThread } from '../daemon/serving-thread.ts';
import { asJobtailError } from '../errors.ts';
import { serveApi } from './serve.ts';

const agent = parentPort;
if (agent === null) throw new Error('this is a thread of the agent');
const report = (message: FromThread) => agent.postMessage(message);
const failure = (error: unknown) => report({ kind: 'failure', message: asJobtailError(error).message });

let close: () => Promise<void> = async () => {};
agent.on('message', (message: ToThread) => {
  if (message.kind === 'pulse') report({ kind: 'pulse' });
  else void close().finally(() => process.exit());
});

const { config, inner } = workerData as ApiThreadData;
close = await serveApi({ config, inner, onFailure: failure }).catch((thrown: unknown) => {
  throw asJobtailError(thrown);
});
report({ kind: 'serving', port: 0 });
