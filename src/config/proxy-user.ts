/** The user of the proxy, read anew for each connection. */
import { Secret } from '../system/secret.ts';
import type { Config } from './config.ts';

/** @throws JobtailError secret-unavailable */
export async function proxyUserOf({ proxyUserFile }: Partial<Config['service']>): Promise<{ proxyUser?: string }> {
  if (proxyUserFile === undefined || proxyUserFile === null) return {};
  const source = { kind: 'file', path: proxyUserFile } as const;
  const secret = new Secret({ source, name: 'user of the proxy', env: {} });
  return { proxyUser: await secret.read(new AbortController().signal) };
}
