/** The thread of the view: a search or a slow query there delays no poll. */
import { parentPort, workerData } from 'node:worker_threads';
import type { FleetSettings } from '../config/schema.ts';
import { asJobtailError } from '../errors.ts';
import { type AgentCounts, Figures } from '../view/events/figures.ts';
import { type RunningView, serveView } from '../view/serve.ts';
import type { ViewSettings } from '../view/settings.ts';
import { fleetOfView } from './fleet.ts';
import type { FromThread, ToThread } from './serving-thread.ts';

const agent = parentPort;
if (agent === null) throw new Error('this is a thread of the agent');
const report = (message: FromThread) => agent.postMessage(message);

let view: RunningView | undefined;
const figures = new Figures();

agent.on('message', (message: ToThread & { readonly counts: AgentCounts }) => {
  if (message.kind === 'pulse') {
    figures.add(message.counts, Date.now());
    report({ kind: 'pulse' });
  } else void view?.close().finally(() => process.exit());
});

const { settings, fleet } = workerData as ViewThreadData;
view = await serveView({
  settings,
  fleet: fleet && (await fleetOfView(fleet, settings)),
  figures,
  onFailure: (error) => report({ kind: 'failure', message: asJobtailError(error).message }),
}).catch((thrown: unknown) => {
  throw asJobtailError(thrown);
});
report({ kind: 'serving', port: view.port });

export interface ViewThreadData {
  readonly settings: ViewSettings;
  readonly fleet: FleetSettings | null;
}
