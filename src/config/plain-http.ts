/** Addresses of the configuration over which secrets travel readably. */
import type { Config } from './config.ts';
import { addressesOf } from './service-address.ts';

/** Origins that are neither encrypted nor on this machine, whatever proxy lies before them. */
export function plainOrigins({ service }: Pick<Config, 'service'>): string[] {
  const urls = addressesOf(service).map((url) => new URL(url));
  const plain = urls.filter(({ protocol, hostname }) => protocol !== 'https:' && !isHere(hostname));
  return [...new Set(plain.map(({ origin }) => origin))];
}

/** What is wrong with such an origin, and what to do about it. */
export const plainText = (origin: string) => `${origin} is not encrypted: passwords and session codes travel readably`;
export const PLAIN_HINT = 'use https:// if the service has it';

/** Says it where the agent follows jobs. */
export function warnOfPlainHttp(
  config: Pick<Config, 'service'>,
  log: { warn(fields: object, text: string): void },
): void {
  for (const origin of plainOrigins(config)) {
    log.warn({ scope: 'the service', code: 'config', hint: PLAIN_HINT }, plainText(origin));
  }
}

const isHere = (hostname: string) =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
