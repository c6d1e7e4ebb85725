/** Where the view of the running agent is, and whether it answers. */
import pc from 'picocolors';
import type { Config } from '../../config/config.ts';
import { addressOf, viewAnswers } from '../../view/link.ts';

export interface ViewReport {
  readonly address: string;
  readonly answers: boolean;
}

/** Null where the configuration has none. */
export async function viewReport({ view }: Pick<Config, 'view'>): Promise<ViewReport | null> {
  if (view === null) return null;
  return { address: addressOf(view.listen, view.listen.port), answers: await viewAnswers(view.listen) };
}

/** A line for people; none where there is no view, or no agent to serve it. */
export function viewLine(view: ViewReport | null, agentRuns: boolean): string {
  if (view === null || !agentRuns) return '';
  if (view.answers) return `the view is at ${view.address} (agent view prints its link)\n`;
  return `${pc.red(`the view does not answer at ${view.address}`)} (the log of the agent says why)\n`;
}
