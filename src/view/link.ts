/** Where a view is: its link for a person, and whether it answers. */
import { once } from 'node:events';
import http from 'node:http';
import type { ViewSettings } from './settings.ts';

type Listen = ViewSettings['listen'];

const ANSWER_MS = 1_000;

/** As it is written in an address; one that stands for all of this machine, as this machine. */
function hostOf({ host }: Listen): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** Without the token: for a log, and for everybody. */
export const addressOf = (listen: Listen, port: number): string => `http://${hostOf(listen)}:${port}/`;

/** With the token: for a person. */
export function linkOf(
  { listen, publicUrl }: Pick<ViewSettings, 'listen' | 'publicUrl'>,
  port: number,
  token: string,
): string {
  return `${publicUrl ?? addressOf(listen, port)}?token=${token}`;
}

/** Whether a view is there: it wants a token. */
export async function viewAnswers(listen: Listen): Promise<boolean> {
  const request = http.get(addressOf(listen, listen.port), { timeout: ANSWER_MS, agent: false });
  request.once('timeout', () => request.destroy());
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.resume();
    return response.statusCode === 401;
  } catch {
    return false;
  }
}
