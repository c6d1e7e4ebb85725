/** Answers that are made while they are sent. */
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { ViewParts } from '../parts.ts';
import { Refused } from '../refused.ts';
import { bodyOf } from './body.ts';

type WithBindings = { Bindings: HttpBindings };
export type ViewApp = Hono<WithBindings>;
export type ViewContext = Context<WithBindings>;

export interface StreamedOptions {
  readonly status?: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Called once, however it ends. */
  readonly end: () => void;
}

/** One that cannot go on breaks off: nobody takes what came for all there is. */
export function streamed(
  { onFailure }: ViewParts,
  { env }: ViewContext,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { status = 200, headers, end }: StreamedOptions,
): Response {
  const broken = (error: unknown) => {
    if (!(error instanceof Refused)) onFailure(error);
    env.outgoing.destroy();
  };
  const body = bodyOf(pieces, { end, broken });
  return new Response(body, { status, headers: { 'cache-control': 'no-store', ...headers } });
}
