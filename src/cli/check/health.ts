/** `agent check`: what a server that speaks REST says of its own health and version (docs/rest.md 4.1). */
import * as z from 'zod';
import type { Config } from '../../config/config.ts';
import { wayTo } from '../../daemon/connection.ts';
import { answerOf } from './description.ts';
import { type Finding, note, ok, warning } from './findings.ts';

/** Characters of a text of the server that are shown. */
const MAX_SHOWN = 60;

const PART = z.looseObject({ IsHealthy: z.boolean() });
const HEALTH = z.looseObject({
  IsHealthy: z.boolean(),
  Version: z.string().nullish(),
  Component: z.record(z.string(), z.unknown()).nullish(),
});

/** Releases before V6.0 have no such page: then there is nothing to show. */
export async function healthOf(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const { service } = config;
  if (service.protocol !== 'rest') return [];
  const address = `${service.baseUrl}${service.path}/Health`;
  const answer = await answerOf(address, signal, await wayTo(config));
  const { success, data } = HEALTH.safeParse(answer && jsonOf(answer.text));
  if (!success) return [note('not reported by this server (V6.0 and later have a page for it)')];
  const version = (data.Version ?? '').slice(0, MAX_SHOWN);
  const shown = version === '' ? [] : [note(`its operator names it ${JSON.stringify(version)}; this decides nothing`)];
  if (data.IsHealthy) return [ok('the server reports that it is healthy'), ...shown];
  const parts = Object.entries(data.Component ?? {}).filter(
    ([, part]) => PART.safeParse(part).data?.IsHealthy === false,
  );
  const names = parts.map(([name]) => name.slice(0, MAX_SHOWN)).join(', ');
  const what = names === '' ? '' : `: ${names}`;
  return [warning(`the server reports that it is not healthy${what}`, 'ask its operator'), ...shown];
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
