/** What the agent and the thread of its view say to each other. */
import type { AgentFigure } from './events/agent-figures.ts';

/** From the thread. */
export type FromView =
  | { readonly kind: 'serving'; readonly port: number }
  /** What the agent counted is wanted; it answers with `ToView`. */
  | { readonly kind: 'figure' }
  /** It goes on, but something went wrong. */
  | { readonly kind: 'failure'; readonly message: string }
  /** It cannot serve, and ends. */
  | { readonly kind: 'ended'; readonly message: string; readonly hint: string | undefined };

export type ToView = { readonly kind: 'figure'; readonly figure: AgentFigure } | { readonly kind: 'close' };
