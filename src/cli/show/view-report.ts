/** Where the view of the running agent is, and whether what listens there has proven to be it. */
import pc from 'picocolors';
import type { Config } from '../../config/config.ts';
import { asJobtailError } from '../../errors.ts';
import { addressOf, findView, unprovenText } from '../../view/link.ts';
import { readToken, tokenFileOf } from '../../view/token.ts';

export interface ViewReport {
  readonly address: string;
  /** It has proven that it knows the token. */
  readonly answers: boolean;
  /** Why no link leads there, if something else listens. */
  readonly problem?: string;
}

/** Null where the configuration has none. */
export async function viewReport({ view, state }: Pick<Config, 'view' | 'state'>): Promise<ViewReport | null> {
  if (view === null) return null;
  const { listen, tokenFile } = view;
  const address = addressOf(listen);
  try {
    const token = readToken(tokenFileOf({ tokenFile, stateDirectory: state.directory }));
    const found = await findView(listen, token);
    if (found.kind !== 'unproven') return { address, answers: found.kind === 'view' };
    return { address, answers: false, problem: unprovenText(listen, found.user) };
  } catch (error) {
    return { address, answers: false, problem: asJobtailError(error).message };
  }
}

/** A line for people; none where there is no view, or no agent to serve it. */
export function viewLine(view: ViewReport | null, agentRuns: boolean): string {
  if (view === null || !agentRuns) return '';
  if (view.answers) return `the view is at ${view.address} (agent view prints its link)\n`;
  const problem = view.problem === undefined ? '' : `: ${view.problem}`;
  return `${pc.red(`the view does not answer at ${view.address}${problem}`)} (the log of the agent has the reason)\n`;
}
