/** The thread of the view: a search or a slow query there delays no poll. */
import { workerData } from 'node:worker_threads';
import type { FleetSettings } from '../config/schema.ts';
import { type AgentCounts, Figures } from '../view/events/figures.ts';
import { serveView } from '../view/serve.ts';
import type { ViewSettings } from '../view/settings.ts';
import { fleetOfView } from './fleet.ts';
import { serveInThread } from './serving-thread.ts';

export interface ViewThreadData {
  readonly settings: ViewSettings;
  readonly fleet: FleetSettings | null;
}

const figures = new Figures();
const { settings, fleet } = workerData as ViewThreadData;
await serveInThread<{ readonly counts: AgentCounts }>(
  async (onFailure) =>
    await serveView({ settings, fleet: fleet && (await fleetOfView(fleet, settings)), figures, onFailure }),
  ({ counts }) => figures.add(counts, Date.now()),
);
